// Preloaded into a starter (`node --import`): SIGKILLs the process just before or just after its Nth call into the
// file system or to spawn, so that a test can have it die at every step, without a hook in the code under test.
import childProcess from "node:child_process";
import fs from "node:fs";
import fsPromises from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import { Writable } from "node:stream";

const dieAt = Number(process.env.DIE_AT);
const after = process.env.DIE_WHEN === "after";
let armed = false;
let calls = 0;

/** Called by the starter once its own loading is over. */
globalThis.armDeath = () => {
  armed = true;
};

function die() {
  fs.writeSync(1, `died ${process.env.DIE_WHEN} call ${calls}\n`);
  process.kill(process.pid, "SIGKILL");
  // Nothing may happen between the signal's sending and its arrival.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10_000);
}

function deadly(owner, name) {
  const original = owner[name];
  owner[name] = function (...args) {
    if (!armed) return original.apply(this, args);
    const isLast = ++calls === dieAt;
    if (isLast && !after) die();
    const result = original.apply(this, args);
    if (isLast && after) {
      if (typeof result?.then === "function") return result.finally(die);
      die();
    }
    return result;
  };
}

for (const name of ["lstat", "mkdir", "open", "rename", "rm", "writeFile"]) deadly(fsPromises, name);
for (const name of ["openSync", "fsyncSync", "closeSync"]) deadly(fs, name);
deadly(childProcess, "spawn");
deadly(Writable.prototype, "end");
syncBuiltinESMExports();
