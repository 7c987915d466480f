/** What adapters are given, checked for words that nobody reads. */
import { WorkflowError } from "./errors.js";

/**
 * Refuses options that there are not: a misspelt one would be passed over in silence. For the first line of an adapter's
 * factory.
 * @param factory the factory's name, for the message
 * @param known every option there is; the compiler sees to it that none is forgotten
 * @throws WorkflowError `configuration`
 */
export function checkOptions<Options extends object>(
  factory: string,
  options: Options,
  known: Readonly<Record<keyof Options, true>>,
): void {
  const names = Object.keys(known);
  if (typeof options !== "object" || options === null) {
    throw new WorkflowError("configuration", `${factory} needs options: ${names.join(", ")}`);
  }
  const unknown = Object.keys(options).filter((name) => !Object.hasOwn(known, name));
  if (unknown.length === 0) return;
  throw new WorkflowError(
    "configuration",
    `${factory} has no option ${unknown.map((name) => JSON.stringify(name)).join(", ")}; its options are ${names.join(", ")}`,
  );
}
