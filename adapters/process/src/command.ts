import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { closeSync, constants, openSync, rmSync, statSync } from "node:fs";
import net from "node:net";
import path from "node:path";
import { errorCode } from "./files.js";
import type { Ending } from "./records.js";

/** How long output that is still in a pipe may take after the command's end. */
const DRAIN_IDLE_MS = 100;
const DRAIN_MS = 2000;

export interface CommandOptions {
  readonly argv: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** For the FIFOs that become the command's stdout and stderr. */
  readonly directory: string;
  /** A file to read from. `undefined`: an empty stdin. */
  readonly stdin: string | undefined;
  readonly onOutput: (name: "stdout" | "stderr", chunk: Buffer) => void;
}

/** A running command: the leader of its own session and process group. */
export interface Command {
  readonly pid: number;
  readonly ended: Promise<Extract<Ending, { how: "exited" | "signalled" }>>;
  /** Signals the whole group. @returns whether there was anybody to signal */
  signal(name: NodeJS.Signals | 0): boolean;
  /** Waits for what is left in the pipes, but not for grandchildren that keep them open. */
  drained(): Promise<void>;
}

interface Pipe {
  readonly readFd: number;
  readonly writeFd: number;
}

/** @returns the command, or why the system refused to run it */
export async function runCommand(
  options: CommandOptions,
): Promise<Command | Extract<Ending, { how: "not started" }>> {
  const { argv, cwd, env, directory, onOutput } = options;
  if (!statSync(cwd, { throwIfNoEntry: false })?.isDirectory()) {
    return refused("ENOENT", "The working directory of the command does not exist.");
  }
  let stdout: Pipe;
  let stderr: Pipe;
  let stdin: number;
  try {
    stdout = openPipe(path.join(directory, ".stdout.fifo"));
    stderr = openPipe(path.join(directory, ".stderr.fifo"));
    stdin = openSync(options.stdin ?? "/dev/null", constants.O_RDONLY | constants.O_NOFOLLOW);
  } catch (error) {
    return refused(
      errorCode(error) ?? "Error",
      "The pipes of the command could not be made: is mkfifo installed?",
    );
  }
  let child: ChildProcess;
  try {
    child = spawn(argv[0] as string, argv.slice(1), {
      cwd,
      env: { ...env },
      detached: true,
      stdio: [stdin, stdout.writeFd, stderr.writeFd],
    });
  } catch (error) {
    return refused(errorCode(error) ?? "Error", explainSpawn(errorCode(error), argv[0] as string));
  } finally {
    for (const fd of [stdin, stdout.writeFd, stderr.writeFd]) closeSync(fd);
  }
  const { pid } = child;
  if (pid === undefined) {
    const code = await new Promise<string>((resolve) =>
      child.once("error", (error) => resolve(errorCode(error) ?? "Error")),
    );
    return refused(code, explainSpawn(code, argv[0] as string));
  }
  const ended = new Promise<Extract<Ending, { how: "exited" | "signalled" }>>((resolve) => {
    child.once("exit", (code, signal) =>
      resolve(signal === null ? { how: "exited", code: code ?? 0 } : { how: "signalled", signal }),
    );
  });
  const drains = [
    drain(stdout.readFd, (chunk) => onOutput("stdout", chunk)),
    drain(stderr.readFd, (chunk) => onOutput("stderr", chunk)),
  ];
  return {
    pid,
    ended,
    signal: (name) => signalGroup(pid, name),
    drained: async () => {
      await Promise.all(drains.map((one) => one.drained()));
    },
  };
}

/** @returns whether there was anybody to signal */
export function signalGroup(leader: number, name: NodeJS.Signals | 0): boolean {
  try {
    process.kill(-leader, name);
    return true;
  } catch (error) {
    // EPERM: somebody is there, but of another user (a set-user-id program).
    return errorCode(error) === "EPERM";
  }
}

/**
 * A true pipe. What Node gives to children are sockets, and those cannot be opened by name: a script's
 * `echo oops > /dev/stderr` would fail with ENXIO.
 */
function openPipe(fifo: string): Pipe {
  rmSync(fifo, { force: true });
  execFileSync("mkfifo", ["-m", "600", fifo], { stdio: "ignore" });
  try {
    // In this order neither open blocks: the writer finds a reader.
    const readFd = openSync(fifo, constants.O_RDONLY | constants.O_NONBLOCK);
    return { readFd, writeFd: openSync(fifo, constants.O_WRONLY) };
  } finally {
    rmSync(fifo, { force: true });
  }
}

function drain(fd: number, onData: (chunk: Buffer) => void): { drained(): Promise<void> } {
  const socket = new net.Socket({ fd, readable: true, writable: false });
  let closed = false;
  let lastData = 0;
  socket.on("data", (chunk: Buffer) => {
    lastData = performance.now();
    onData(chunk);
  });
  socket.on("error", () => {});
  const closing = new Promise<void>((resolve) => {
    socket.once("close", () => {
      closed = true;
      resolve();
    });
  });
  return {
    async drained() {
      const since = performance.now();
      const idle = setInterval(() => {
        const now = performance.now();
        if (now - Math.max(lastData, since) >= DRAIN_IDLE_MS || now - since >= DRAIN_MS) socket.destroy();
      }, DRAIN_IDLE_MS / 4);
      if (!closed) await closing;
      clearInterval(idle);
    },
  };
}

function refused(code: string, message: string): Extract<Ending, { how: "not started" }> {
  return { how: "not started", code, message };
}

/** The program's name is the operator's, so it may be told. Its arguments are the caller's, and are not. */
function explainSpawn(code: string | undefined, program: string): string {
  switch (code) {
    case "ENOENT":
      return `Command not found: ${program}`;
    case "EACCES":
    case "EPERM":
      return `Not permitted to run ${program}: is it executable?`;
    case "E2BIG":
      return `The arguments of ${program} are longer than the system allows. Hand the input over on stdin.`;
    case "ENOEXEC":
      return `${program} is no program that this system can run.`;
    default:
      return `${program} could not be run (${code ?? "unknown error"}).`;
  }
}
