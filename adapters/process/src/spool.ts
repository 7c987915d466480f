import { closeSync, fsyncSync, openSync, renameSync, rmSync, writeFileSync, writeSync } from "node:fs";
import path from "node:path";
import { type EndRecord, FILES, type RunSpec } from "./records.js";
import { incompleteUtf8, lastBytes, lastLine, plainText } from "./text.js";

/** A line without an end is written after this many milliseconds, or bytes: a prompt, a progress bar. */
const FLUSH_MS = 100;
const LINE_LIMIT = 16 * 1024;
/** How much of the end of a log over its limit is kept, and how often the latest is put on disk meanwhile. */
const LOG_TAIL = 64 * 1024;
const LOG_TAIL_MS = 500;

/**
 * Takes the two streams of a command to disk, within limits. Writes are synchronous: that keeps the order, and makes
 * a command that prints faster than the disk writes wait, as it would on a terminal.
 */
export class Spool {
  readonly #log: BoundedLog;
  readonly #json: HeadFile;
  readonly #streams: { readonly stdout: Lines; readonly stderr: Lines };

  constructor(directory: string, spec: RunSpec) {
    this.#log = new BoundedLog(directory, spec.maxOutputBytes);
    this.#json = new HeadFile(path.join(directory, FILES.stdout), spec.maxJsonBytes);
    const write = (bytes: Buffer) => this.#log.write(bytes);
    this.#streams = { stdout: new Lines(spec.tailBytes, write), stderr: new Lines(spec.tailBytes, write) };
  }

  take(name: "stdout" | "stderr", chunk: Buffer): void {
    if (name === "stdout") this.#json.write(chunk);
    this.#streams[name].take(chunk);
  }

  end(): Pick<EndRecord, "stdout" | "stderr" | "lastLine"> {
    const { stdout, stderr } = this.#streams;
    stdout.flush();
    stderr.flush();
    this.#json.end();
    const last = this.#log.end();
    return { stdout: stdout.tail(), stderr: stderr.tail(), lastLine: lastLine(last.toString("utf8")) };
  }
}

/** One stream on its way into the common log: whole lines, so that the other stream does not cut into them. */
class Lines {
  #line: Buffer = Buffer.alloc(0);
  #timer: NodeJS.Timeout | undefined;
  #bytes = 0;
  readonly #tail: LastBytes;

  constructor(
    private readonly tailBytes: number,
    private readonly write: (bytes: Buffer) => void,
  ) {
    this.#tail = new LastBytes(tailBytes);
  }

  take(chunk: Buffer): void {
    this.#bytes += chunk.length;
    this.#tail.take(chunk);
    const whole = chunk.lastIndexOf(0x0a) + 1;
    if (whole > 0) {
      this.write(
        this.#line.length === 0
          ? chunk.subarray(0, whole)
          : Buffer.concat([this.#line, chunk.subarray(0, whole)]),
      );
      this.#line = Buffer.from(chunk.subarray(whole));
    } else {
      this.#line = Buffer.concat([this.#line, chunk]);
    }
    if (this.#line.length > LINE_LIMIT) this.#writeCharacters();
    if (this.#line.length > 0) this.#timer ??= setTimeout(() => this.#writeCharacters(), FLUSH_MS);
  }

  flush(): void {
    clearTimeout(this.#timer);
    if (this.#line.length > 0) this.write(this.#line);
    this.#line = Buffer.alloc(0);
  }

  tail(): EndRecord["stdout"] {
    return {
      text: plainText(lastBytes(this.#tail.bytes(), this.tailBytes).toString("utf8")),
      bytes: this.#bytes,
    };
  }

  /** What is there of the line, but no half character. */
  #writeCharacters(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const cut = this.#line.length - incompleteUtf8(this.#line);
    if (cut > 0) this.write(this.#line.subarray(0, cut));
    this.#line = Buffer.from(this.#line.subarray(cut));
  }
}

/** The beginning of the output up to a limit, then a notice and the end of it. */
class BoundedLog {
  readonly #fd: number;
  readonly #last = new LastBytes(LOG_TAIL);
  #written = 0;
  #dropped = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly directory: string,
    private readonly limit: number,
  ) {
    this.#fd = openSync(path.join(directory, FILES.log), "wx", 0o600);
  }

  write(bytes: Buffer): void {
    this.#last.take(bytes);
    let kept = 0;
    // Once something is left out, nothing after it may follow as if it did.
    if (this.#dropped === 0) {
      kept = Math.min(bytes.length, this.limit - this.#written);
      if (kept < bytes.length) kept -= incompleteUtf8(bytes.subarray(0, kept));
      kept = append(this.#fd, bytes.subarray(0, kept));
      this.#written += kept;
    }
    this.#dropped += bytes.length - kept;
    if (this.#dropped > 0) this.#timer ??= setTimeout(() => this.#showLast(), LOG_TAIL_MS);
  }

  /** @returns the last of the output */
  end(): Buffer {
    clearTimeout(this.#timer);
    const last = this.#last.bytes();
    if (this.#dropped > 0) {
      const kept = lastBytes(last, Math.min(this.#dropped, LOG_TAIL));
      const left = this.#dropped - kept.length;
      append(
        this.#fd,
        Buffer.from(`\n[taskferry: ${left} bytes left out, the output limit is ${this.limit} bytes]\n`),
      );
      append(this.#fd, kept);
    }
    try {
      fsyncSync(this.#fd);
    } catch {
      // A full disk must not cost the exit status.
    }
    closeSync(this.#fd);
    rmSync(path.join(this.directory, FILES.logTail), { force: true });
    return last;
  }

  #showLast(): void {
    this.#timer = undefined;
    const draft = path.join(this.directory, `.${FILES.logTail}`);
    try {
      writeFileSync(draft, this.#last.bytes(), { mode: 0o600 });
      renameSync(draft, path.join(this.directory, FILES.logTail));
    } catch {
      // Only the message of a running run is older for it.
    }
  }
}

/** The first bytes of stdout. Whoever reads it knows from the end record how many there should be. */
class HeadFile {
  readonly #fd: number;
  #written = 0;

  constructor(
    file: string,
    private readonly limit: number,
  ) {
    this.#fd = openSync(file, "wx", 0o600);
  }

  write(bytes: Buffer): void {
    const kept = Math.min(bytes.length, this.limit - this.#written);
    if (kept > 0) this.#written += append(this.#fd, bytes.subarray(0, kept));
  }

  end(): void {
    closeSync(this.#fd);
  }
}

class LastBytes {
  #bytes: Buffer = Buffer.alloc(0);

  constructor(private readonly limit: number) {}

  take(chunk: Buffer): void {
    // Cut seldom and by half, so that many small chunks do not copy the whole each time.
    const joined = Buffer.concat([this.#bytes, chunk.subarray(-2 * this.limit || chunk.length)]);
    this.#bytes =
      joined.length > 2 * this.limit ? Buffer.from(joined.subarray(joined.length - this.limit)) : joined;
  }

  bytes(): Buffer {
    return lastBytes(this.#bytes, this.limit);
  }
}

/** @returns how many bytes the disk took */
function append(fd: number, bytes: Buffer): number {
  let written = 0;
  try {
    while (written < bytes.length) written += writeSync(fd, bytes, written);
  } catch {
    // A full disk: counted as left out, the command goes on.
  }
  return written;
}
