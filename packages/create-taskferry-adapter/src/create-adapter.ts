import { cp, mkdir, readdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const TEMPLATE = fileURLToPath(new URL("../template", import.meta.url));

/** What is to be made. */
export interface CreateAdapterOptions {
  /** The engine's name: lower-case words with dashes. The package is called `taskferry-<name>`. */
  readonly name: string;
  /** Where the package is written. Must not exist, or be empty. */
  readonly folder: string;
}

/** A name or a folder that cannot be used. The message is fit for the person who typed it. */
export class CreateAdapterError extends Error {
  override readonly name = "CreateAdapterError";
}

/**
 * Writes a package with an adapter that builds and passes the kit, on an engine in memory that is to be replaced.
 * @throws CreateAdapterError
 */
export async function createAdapter({ name, folder }: CreateAdapterOptions): Promise<void> {
  if (!/^[a-z][a-z0-9]*(-[a-z0-9]+)*$/.test(name)) {
    throw new CreateAdapterError(
      `"${name}" cannot be an engine's name: take lower-case words with dashes, like my-engine`,
    );
  }
  await mkdir(folder, { recursive: true });
  if ((await readdir(folder)).length > 0) throw new CreateAdapterError(`${folder} is not empty`);
  const files = (await readdir(TEMPLATE, { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(TEMPLATE.length + 1))
    .filter((file) => !/^(node_modules|dist)[\\/]/.test(file));
  for (const file of files) {
    const target = join(folder, file);
    await cp(join(TEMPLATE, file), target);
    await writeFile(target, renamed(await readFile(target, "utf8"), name));
  }
  // npm leaves files of this name out of packages.
  await rename(join(folder, "_gitignore"), join(folder, ".gitignore"));
}

/** The template's own name, in every spelling that it has. */
function renamed(text: string, name: string): string {
  const words = name.split("-");
  const pascal = words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join("");
  const camel = pascal.charAt(0).toLowerCase() + pascal.slice(1);
  return text
    .replaceAll("my-engine", name)
    .replaceAll("MY_ENGINE", words.join("_").toUpperCase())
    .replaceAll("MyEngine", pascal)
    .replaceAll("myEngine", camel);
}
