/** Packs what would be published, exactly as `pnpm publish` would: the workspace's LICENSE comes along. */
import { execFile } from "node:child_process";
import { access, mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

export const run = promisify(execFile);

/** The repository. */
export const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** A package, packed. */
export interface Packed {
  readonly name: string;
  readonly folder: string;
  readonly tarball: string;
}

/** Every package of the workspace that is not private. */
async function publishable(): Promise<{ name: string; folder: string }[]> {
  const found: { name: string; folder: string }[] = [];
  for (const parent of ["packages", "adapters"]) {
    for (const entry of (await readdir(join(ROOT, parent))).sort()) {
      const folder = join(ROOT, parent, entry);
      const manifest = join(folder, "package.json");
      if (!(await exists(manifest))) continue;
      const { name, private: isPrivate } = JSON.parse(await readFile(manifest, "utf8"));
      if (isPrivate !== true) found.push({ name, folder });
    }
  }
  return found;
}

/** Packs all of them into a new folder, lends it to `use`, and removes it. */
export async function withPacked<T>(use: (packed: readonly Packed[]) => Promise<T>): Promise<T> {
  const destination = await mkdtemp(join(tmpdir(), "taskferry-packed-"));
  try {
    const packed: Packed[] = [];
    for (const { name, folder } of await publishable()) {
      const before = new Set(await readdir(destination));
      await run("npx", ["-y", "pnpm@12", "pack", "--pack-destination", destination], { cwd: folder });
      const [file] = (await readdir(destination)).filter((entry) => !before.has(entry));
      if (file === undefined) throw new Error(`pnpm pack made no tarball of ${name}`);
      packed.push({ name, folder, tarball: join(destination, file) });
    }
    return await use(packed);
  } finally {
    await rm(destination, { recursive: true, force: true });
  }
}

export function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
