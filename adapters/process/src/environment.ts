import type { Settings } from "./options.js";

/** The command's environment: what the list names of the server's, and what is set. Nothing else of the server's leaks. */
export function commandEnvironment({
  passEnv,
  env,
}: Pick<Settings, "passEnv" | "env">): Record<string, string> {
  const passed = passEnv.flatMap((name) => {
    const value = process.env[name];
    return value === undefined ? [] : [[name, value] as const];
  });
  return { ...Object.fromEntries(passed), ...env };
}
