/** A Restate workflow that does as it is told from outside, one command after the other. */
import {
  CancelledError,
  handlers,
  RestatePromise,
  TerminalError,
  type WorkflowContext,
  type WorkflowSharedContext,
  workflow,
} from "@restatedev/restate-sdk";
import type { Answer, Json, Question } from "@taskferry/core";

export type Command =
  | { readonly act: "finish"; readonly value: Json }
  | { readonly act: "fail"; readonly message: string }
  | { readonly act: "progress"; readonly done: number; readonly total: number }
  | { readonly act: "ask" }
  | { readonly act: "withdraw" }
  | { readonly act: "ignoreStop" };

type Heard =
  | { readonly command: Command; readonly key?: undefined }
  | { readonly key: string; readonly answer: Answer };

export const kitWorkflow = (name: string) =>
  workflow({
    name,
    handlers: {
      run: async (ctx: WorkflowContext, input: Json): Promise<Json> => {
        ctx.set("input", input);
        let open: readonly Question[] = [];
        const answers: Answer[] = [];
        let asked = 0;
        let ignoresStop = false;
        for (let heeded = 0; ; ) {
          let heard: Heard;
          try {
            heard = await RestatePromise.race([
              ctx
                .promise<Command>(`command-${heeded}`)
                .get()
                .map((command): Heard => ({ command: command as Command })),
              ...open.map(({ key }) =>
                ctx
                  .promise<Answer>(`answer-${key}`)
                  .get()
                  .map((answer): Heard => ({ key, answer: answer as Answer })),
              ),
            ]);
          } catch (error) {
            if (error instanceof CancelledError && ignoresStop) continue;
            throw error;
          }
          if (heard.key !== undefined) {
            const { key, answer } = heard;
            answers.push(answer);
            ctx.set("answers", answers);
            open = open.filter((question) => question.key !== key);
            ctx.set("questions", open);
            continue;
          }
          const { command } = heard;
          if (command.act === "finish") return command.value;
          if (command.act === "fail") throw new TerminalError(command.message, { errorCode: 500 });
          if (command.act === "progress") ctx.set("progress", { done: command.done, total: command.total });
          if (command.act === "ignoreStop") ignoresStop = true;
          if (command.act === "withdraw") open = [];
          if (command.act === "ask") open = [...open, question(`where-${++asked}`)];
          ctx.set("questions", open);
          ctx.set("heeded", ++heeded);
        }
      },

      command: handlers.workflow.shared(
        async (ctx: WorkflowSharedContext, { number, command }: { number: number; command: Command }) =>
          ctx.promise<Command>(`command-${number}`).resolve(command),
      ),

      /** The convention of the adapter: `questions` in the state, and this. */
      answer: handlers.workflow.shared(
        async (ctx: WorkflowSharedContext, { key, answer }: { key: string; answer: Answer }) => {
          const open = (await ctx.get<Question[]>("questions")) ?? [];
          if (!open.some((question) => question.key === key)) {
            throw new TerminalError("The question is not open", { errorCode: 410 });
          }
          // Throws 409 when it has been answered already.
          await ctx.promise<Answer>(`answer-${key}`).resolve(answer);
        },
      ),

      told: handlers.workflow.shared(async (ctx: WorkflowSharedContext, key: string) => ctx.get<Json>(key)),
    },
  });

function question(key: string): Question {
  return {
    key,
    message: "Where to?",
    schema: { type: "object", properties: { where: { type: "string" } } },
  };
}
