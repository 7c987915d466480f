import { describe, expect, it } from "vitest";
import { incompleteUtf8, lastBytes, lastLine, plainText } from "../src/text.js";

const SAMPLE = "aé€😀z";

describe("UTF-8", () => {
  it("is cut only between characters, wherever the cut falls", () => {
    const bytes = Buffer.from(SAMPLE);
    for (let end = 0; end <= bytes.length; end++) {
      const part = bytes.subarray(0, end);
      const whole = part.subarray(0, part.length - incompleteUtf8(part)).toString("utf8");
      expect(SAMPLE.startsWith(whole)).toBe(true);
      expect(end - Buffer.byteLength(whole)).toBeLessThan(4);
    }
    for (let limit = 0; limit <= bytes.length; limit++) {
      const tail = lastBytes(bytes, limit).toString("utf8");
      expect(SAMPLE.endsWith(tail)).toBe(true);
      expect(limit - Buffer.byteLength(tail)).toBeLessThan(4);
    }
  });

  it("that is none is not held back for ever", () => {
    expect(incompleteUtf8(Buffer.from([0x80, 0x80, 0x80, 0x80]))).toBe(0);
    expect(incompleteUtf8(Buffer.from([0xff, 0x41]))).toBe(0);
  });
});

describe("the last line", () => {
  it.each([
    ["one\ntwo\n\n  \n", "two"],
    ["\u001b[32mdone\u001b[0m\r\n", "done"],
    ["10%\r20%\r30%", "30%"],
    ["\u001b]0;title\u0007text\u0000\u0008", "text"],
    ["", ""],
  ])("of %j is %j", (output, line) => {
    expect(lastLine(output)).toBe(line);
  });

  it("is bounded, and not cut inside a character", () => {
    expect(lastLine("😀".repeat(400), 10)).toBe(`${"😀".repeat(9)}…`);
  });
});

it("plain text keeps lines and tabs only", () => {
  expect(plainText("a\tb\r\nc\u001b[1md\u0000\u009b2J")).toBe("a\tb\ncd");
});
