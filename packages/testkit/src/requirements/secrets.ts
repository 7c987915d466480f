import assert from "node:assert/strict";
import type { ErrorVerdict } from "@taskferry/core";
import { requirement } from "../requirement.js";
import { verdictOf } from "../scene.js";
import { acceptance } from "./questions.js";

const SECRET = "kit-secret-5b1c9e";

/** Credentials, inputs and answers stay out of everything that is shown or logged. */
export const secrets = [
  requirement({
    id: "secrets.input",
    behaviour: "secrets",
    says: "A refused start does not quote the input, neither in the error's message nor in the verdict",
    source: "ErrorVerdict.message",
    drive: ["reject"],
    async check(scene) {
      await scene.drive.reject();
      const { error, verdict } = await scene.refusal(scene.start({ payload: { note: SECRET } }));
      assertHidden([SECRET], error, verdict);
    },
  }),
  requirement({
    id: "secrets.answer",
    behaviour: "secrets",
    says: "A refused answer does not quote its content",
    source: "ErrorVerdict.message",
    drive: ["ask", "withdraw"],
    adapter: ["answer"],
    async check(scene) {
      const { run, question } = await scene.startAsking();
      await scene.drive.withdraw(run);
      const content = { ...acceptance(question).content, note: SECRET };
      const call = scene.adapter.answer(run.ref, question.key, { action: "accept", content }, scene);
      const refused = await call.then(
        () => undefined,
        (error: unknown) => error,
      );
      if (refused !== undefined) assertHidden([SECRET], refused, verdictOf(scene.adapter, refused));
    },
  }),
  requirement({
    id: "secrets.credentials",
    behaviour: "secrets",
    says: "No error shows the adapter's credentials",
    source: "ErrorVerdict.message",
    drive: ["secrets", "disconnect"],
    async check(scene) {
      const run = await scene.start();
      await scene.drive.disconnect();
      for (const call of [() => scene.start(), () => run.read()]) {
        const { error, verdict } = await scene.refusal(call());
        assertHidden(scene.drive.secrets(), error, verdict);
      }
    },
  }),
  requirement({
    id: "secrets.ref",
    behaviour: "secrets",
    says: "Neither the started run nor its state holds the adapter's credentials",
    source: "RunRef",
    drive: ["secrets"],
    async check(scene) {
      const run = await scene.start();
      const state = await run.until("a state", () => true);
      for (const secret of scene.drive.secrets()) {
        assert.ok(!JSON.stringify([run.started, state]).includes(secret), "a credential is shown");
      }
    },
  }),
] as const;

function assertHidden(secrets: readonly string[], error: unknown, verdict: ErrorVerdict): void {
  const shown = [String(error), JSON.stringify(verdict)].join("\n");
  for (const secret of secrets) assert.ok(!shown.includes(secret), "a secret is shown");
}
