import { stripVTControlCharacters } from "node:util";

/** How many bytes at the end of `bytes` begin a UTF-8 character without ending it: 0 to 3. */
export function incompleteUtf8(bytes: Uint8Array): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back] as number;
    if ((byte & 0b1100_0000) === 0b1000_0000) continue;
    const length = byte >= 0b1111_0000 ? 4 : byte >= 0b1110_0000 ? 3 : byte >= 0b1100_0000 ? 2 : 1;
    return length > back ? back : 0;
  }
  return 0;
}

/** The last `limit` bytes, from the beginning of a character on. */
export function lastBytes(bytes: Buffer, limit: number): Buffer {
  if (bytes.length <= limit) return bytes;
  let from = bytes.length - limit;
  for (let skipped = 0; skipped < 3 && ((bytes[from] ?? 0) & 0b1100_0000) === 0b1000_0000; skipped++) from++;
  return bytes.subarray(from);
}

/** Output as plain text: no colours, no cursor moves, no control characters but line feed and tab. */
export function plainText(output: string): string {
  const text = stripVTControlCharacters(output.replaceAll("\r\n", "\n"));
  return text.replace(/(?![\n\t])\p{Cc}/gu, (char) => (char === "\r" ? "\n" : ""));
}

/** The last line that is not empty, at most `limit` characters. A progress bar's `\r` begins a line too. */
export function lastLine(output: string, limit = 300): string {
  const line = plainText(output).trimEnd().split("\n").at(-1)?.trim() ?? "";
  const characters = [...line];
  return characters.length <= limit ? line : `${characters.slice(0, limit - 1).join("")}…`;
}
