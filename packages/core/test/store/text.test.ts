/** Words of strangers: every text comes back as it was given, and no two become one. */
import fc from "fast-check";
import { describe, expect, onTestFinished, test } from "vitest";
import { decodeText, encodeText } from "../../src/store/text.js";
import { databases } from "./databases.js";
import { CREATED, row } from "./rows.js";

/** Any UTF-16, and often what databases trip over. */
const anyText = fc
  .array(
    fc.oneof(
      fc.constantFrom("\u0000", "\u0001", "\ud800", "\udfff", "\ufffd", "😀", "a", "'", '"', "%"),
      fc.integer({ min: 0, max: 0xffff }).map((unit) => String.fromCharCode(unit)),
    ),
    { maxLength: 40 },
  )
  .map((units) => units.join(""));

describe("encoding", () => {
  test("is undone by decoding, and makes what every database takes", () => {
    fc.assert(
      fc.property(anyText, (text) => {
        const stored = encodeText(text);
        expect(decodeText(stored)).toBe(text);
        expect(stored.isWellFormed()).toBe(true);
        expect(stored).not.toContain("\u0000");
      }),
      { numRuns: 2_000 },
    );
  });

  test("leaves ordinary text as it is, so that people can read the tables", () => {
    for (const text of ["", "a", "ü/ä😀", "tab\t and \u0002"]) expect(encodeText(text)).toBe(text);
  });
});

for (const database of databases()) {
  const fresh = async () => {
    const store = await (await database.create()).open();
    onTestFinished(() => store.close());
    return store;
  };

  describe(`${database.name}: strange text`, { timeout: 30_000 }, () => {
    const ODD = ["nul\u0000", "lone\ud800", "lone\udc00", "\u0001x"];

    test("in every column that strangers write", async () => {
      const store = await fresh();
      for (const odd of ODD) {
        const task = row({
          owner: odd,
          taskId: odd,
          message: odd,
          idempotencyKey: odd,
          runUrl: odd,
          claim: odd,
          native: odd,
          requestId: odd,
          connection: odd,
          runRef: { ref: odd },
          progress: { done: 1, message: odd } as never,
        });
        const stored = await store.insert(task, CREATED);
        expect(await store.get(odd, odd)).toEqual(stored);
        expect(stored).toMatchObject(task);
        expect((await store.findByIdempotencyKey(odd, odd))?.taskId).toBe(odd);
        expect((await store.findByRequest(odd, odd, odd))?.taskId).toBe(odd);
        expect((await store.findByRun("fake", JSON.stringify({ ref: odd })))[0]?.taskId).toBe(odd);
        expect(await store.isClaimed("fake", odd, { owner: "x", taskId: "y" })).toBe(true);
        const open = [{ key: odd, message: odd, url: odd }];
        const asked = await store.update(stored, { message: `${odd}!` }, { questions: { open } });
        expect(asked.message).toBe(`${odd}!`);
        await store.update(asked, {}, { questions: { answers: { [odd]: { action: "decline" } } } });
        expect((await store.questions(odd, odd))[0]).toMatchObject({ ...open[0], state: "answered" });
        expect((await store.events({ owner: odd, limit: 1 }))[0]).toMatchObject({ owner: odd, taskId: odd });
      }
    });

    test("keys that UTF-8 would make one stay two", async () => {
      const store = await fresh();
      await store.insert(row({ idempotencyKey: "k\ud800" }), CREATED);
      await store.insert(row({ idempotencyKey: "k\udc00" }), CREATED);
      expect(await store.findByIdempotencyKey("ann", "k\ufffd")).toBeUndefined();
    });

    test("texts that an index could not hold are stored and found", async () => {
      const store = await fresh();
      // Without a pattern: PostgreSQL packs what has one.
      const noise = (length: number) => {
        let seed = 7;
        return Array.from({ length }, () => {
          seed = (seed * 48_271) % 2_147_483_647;
          return String.fromCharCode(0x4e00 + (seed % 20_000));
        }).join("");
      };
      const runRef = { ref: noise(9_000) };
      const requestId = JSON.stringify(noise(9_000));
      const task = await store.insert(row({ runRef, connection: "c", requestId }), CREATED);
      expect(await store.findByRun("fake", JSON.stringify(runRef))).toEqual([task]);
      expect(await store.findByRequest("ann", "c", requestId)).toEqual(task);
      const [owner, taskId, idempotencyKey] = [noise(200), `\ud800${noise(255)}`, noise(256)];
      await store.insert(row({ owner, taskId, idempotencyKey }), CREATED);
      expect((await store.get(owner, taskId))?.idempotencyKey).toBe(idempotencyKey);
    });
  });
}
