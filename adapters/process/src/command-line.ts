import { EngineError, isJsonObject, type Json, WorkflowError } from "@taskferry/core";

/** One argument of a command template, taken apart. */
type Argument =
  | { readonly kind: "spread"; readonly name: string; readonly guarded: boolean }
  | { readonly kind: "text"; readonly parts: readonly Part[]; readonly guarded: boolean };

type Part = string | { readonly name: string; readonly optional: boolean };

/** A command template that was checked once and is filled for every run. */
export interface CommandTemplate {
  readonly arguments: readonly Argument[];
  /** The names of all placeholders. */
  readonly names: ReadonlySet<string>;
}

const PLACEHOLDER = /\\\{\{|\{\{([A-Za-z_][A-Za-z0-9_-]*)(\.\.\.|\?)?\}\}|\{\{/g;
const SHELLS = /^(?:ba|da|z|k|a|fi|c|tc)?sh$/;
/** Linux takes no longer single argument (MAX_ARG_STRLEN, execve(2)). */
const ARGUMENT_LIMIT = 131_071;

/**
 * Takes a command template apart.
 * @param allowDash placeholders whose values may begin with `-` anywhere
 * @throws WorkflowError `configuration`
 */
export function parseCommand(command: readonly string[], allowDash: readonly string[]): CommandTemplate {
  if (!Array.isArray(command)) {
    throw misconfigured(
      '`command` is a list of strings, the program first: ["node", "job.mjs", "{{name}}"]. No shell reads it.',
    );
  }
  if (command.length === 0 || command[0] === "")
    throw misconfigured("`command` needs at least the program's name.");
  const names = new Set<string>();
  let afterDashes = false;
  const parsed = command.map((element, index): Argument => {
    if (typeof element !== "string") throw misconfigured("`command` is a list of strings.");
    if (element.includes("\0")) throw misconfigured("An argument cannot hold a NUL character.");
    const argument = parseArgument(element, (name) => {
      if (index === 0)
        throw misconfigured("The program's name cannot be a placeholder: whoever calls would choose it.");
      names.add(name);
      return !afterDashes && !allowDash.includes(name);
    });
    afterDashes ||= element === "--";
    return argument;
  });
  refuseShellScripts(command);
  const unknown = allowDash.find((name) => !names.has(name));
  if (unknown !== undefined)
    throw misconfigured(`\`allowDash\` names "${unknown}", but no placeholder is called so.`);
  return { arguments: parsed, names };
}

function parseArgument(element: string, guard: (name: string) => boolean): Argument {
  const parts: Part[] = [];
  let guarded = false;
  let end = 0;
  for (const { index, 0: found, 1: name, 2: suffix } of element.matchAll(PLACEHOLDER)) {
    if (index > end) parts.push(element.slice(end, index));
    end = index + found.length;
    if (name === undefined) {
      if (found === "{{") {
        throw misconfigured(
          `"${element}" has "{{" without a placeholder: write {{name}}, {{name?}} or {{names...}}, or \\{{ for the characters themselves.`,
        );
      }
      parts.push("{{");
      continue;
    }
    const isGuarded = guard(name);
    if (suffix === "...") {
      if (found !== element) throw misconfigured(`"${element}": {{${name}...}} must be a whole argument.`);
      return { kind: "spread", name, guarded: isGuarded };
    }
    if (parts.length === 0) guarded = isGuarded;
    parts.push({ name, optional: suffix === "?" });
  }
  if (end < element.length || parts.length === 0) parts.push(element.slice(end));
  return { kind: "text", parts, guarded };
}

/** `sh -c "... {{value}} ..."` would make the value a program. As a positional parameter it stays a value. */
function refuseShellScripts(command: readonly string[]): void {
  const program = command[0]?.split("/").at(-1) ?? "";
  const flag = command.findIndex((element) => /^-[a-z]*c$/.test(element));
  const script = command[flag + 1];
  if (!SHELLS.test(program) || flag < 1 || script === undefined || !/(?<!\\)\{\{/.test(script)) return;
  throw misconfigured(
    'A placeholder inside a shell script would run what the caller sends. Hand it over as a parameter: ["sh", "-c", "grep -- \\"$1\\" file", "sh", "{{pattern}}"].',
  );
}

/**
 * Fills the template: every value becomes one argument, or a part of one, whatever characters it holds.
 * @param allowUnused whether properties without a placeholder are fine, because the command gets the whole input
 * @throws EngineError `rejected`. Messages name properties, never values.
 */
export function fillCommand(template: CommandTemplate, input: Json, allowUnused: boolean): string[] {
  if (template.names.size === 0 && (allowUnused || input === null)) {
    return template.arguments.flatMap((argument) => fillArgument(argument, {}));
  }
  if (!isJsonObject(input))
    throw rejected("The input must be a JSON object whose properties fill the command.");
  const unused = Object.keys(input).filter((name) => !template.names.has(name));
  if (!allowUnused && unused.length > 0) {
    throw rejected(`The command has no place for: ${unused.slice(0, 10).map(quoted).join(", ")}.`);
  }
  return template.arguments.flatMap((argument) => fillArgument(argument, input));
}

function fillArgument(argument: Argument, input: Readonly<Record<string, Json>>): string[] {
  if (argument.kind === "spread") {
    const values = inputOf(input, argument.name) ?? [];
    if (!Array.isArray(values)) throw rejected(`${quoted(argument.name)} must be a list.`);
    return values.map((value: Json) =>
      checked(asText(argument.name, value, argument.guarded), argument.name),
    );
  }
  let text = "";
  let last = "";
  for (const part of argument.parts) {
    if (typeof part === "string") {
      text += part;
      continue;
    }
    const value = inputOf(input, part.name);
    if (value === undefined) {
      if (part.optional) return [];
      throw rejected(`${quoted(part.name)} is missing.`);
    }
    last = part.name;
    text += asText(part.name, value, argument.guarded && text === "");
  }
  return [checked(text, last)];
}

/** `null` counts as absent: that is how many clients send an optional argument. */
function inputOf(input: Readonly<Record<string, Json>>, name: string): Json | undefined {
  return Object.hasOwn(input, name) ? (input[name] ?? undefined) : undefined;
}

function asText(name: string, value: Json, guarded: boolean): string {
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  if (typeof value !== "string") throw rejected(`${quoted(name)} must be a string, a number or a boolean.`);
  if (value.includes("\0")) throw rejected(`${quoted(name)} holds a NUL character, which no argument can.`);
  if (guarded && value.startsWith("-")) {
    throw rejected(`${quoted(name)} begins with "-": the command would take it for an option.`);
  }
  return value;
}

function checked(argument: string, name: string): string {
  if (Buffer.byteLength(argument) <= ARGUMENT_LIMIT) return argument;
  throw rejected(`${quoted(name)} is too long for an argument (${ARGUMENT_LIMIT} bytes).`);
}

function quoted(name: string): string {
  return JSON.stringify(name.slice(0, 100));
}

function rejected(message: string): EngineError {
  return new EngineError({ kind: "rejected", code: "InvalidInput", message });
}

function misconfigured(message: string): WorkflowError {
  return new WorkflowError("configuration", message);
}
