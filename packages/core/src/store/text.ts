/** Text from strangers, as both databases can hold it. */

/** Begins a text that is stored as its UTF-16 code units. */
const ESCAPE = "\u0001";

/**
 * PostgreSQL refuses NUL, and UTF-8 makes every lone surrogate the same U+FFFD: such texts are stored as their code
 * units. Reversible: two different texts never become one.
 */
export function encodeText(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: NUL is what PostgreSQL refuses
  if (text.isWellFormed() && !/\u0000/.test(text) && !text.startsWith(ESCAPE)) return text;
  let units = ESCAPE;
  for (let i = 0; i < text.length; i++) units += text.charCodeAt(i).toString(16).padStart(4, "0");
  return units;
}

/** What {@link encodeText} was given. */
export function decodeText(stored: string): string {
  if (!stored.startsWith(ESCAPE)) return stored;
  let text = "";
  for (let i = ESCAPE.length; i < stored.length; i += 4)
    text += String.fromCharCode(Number.parseInt(stored.slice(i, i + 4), 16));
  return text;
}

export function decodeOrNull(text: string | null): string | null {
  return text === null ? null : decodeText(text);
}

/** A JSON column. */
export function parseOrNull<T>(text: string | null): T | null {
  return text === null ? null : (JSON.parse(text) as T);
}
