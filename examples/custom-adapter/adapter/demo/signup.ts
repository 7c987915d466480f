/** A workflow as somebody would write it: three steps, a question in the middle, and progress. */
import {
  handlers,
  TerminalError,
  type WorkflowContext,
  type WorkflowSharedContext,
  workflow,
} from "@restatedev/restate-sdk";
import type { Answer, Question } from "@taskferry/core";

export const signup = workflow({
  name: "signup",
  handlers: {
    run: async (ctx: WorkflowContext, { email }: { email: string }) => {
      ctx.set("progress", { done: 1, total: 3 });
      const account = await ctx.run("create the account", () => ({ id: `account-of-${email}` }));
      ctx.set("progress", { done: 2, total: 3 });

      const question: Question = {
        key: "plan",
        message: `Which plan for ${email}?`,
        schema: { type: "object", properties: { plan: { type: "string", enum: ["free", "pro"] } } },
      };
      ctx.set("questions", [question]);
      const { action, content } = await ctx.promise<Answer>("answer-plan");
      ctx.set("questions", []);
      if (action !== "accept") throw new TerminalError("Nobody chose a plan", { errorCode: 422 });
      return { ...account, plan: content?.["plan"] ?? "free" };
    },

    answer: handlers.workflow.shared(
      async (ctx: WorkflowSharedContext, { key, answer }: { key: string; answer: Answer }) => {
        const open = (await ctx.get<Question[]>("questions")) ?? [];
        if (!open.some((question) => question.key === key)) {
          throw new TerminalError("The question is not open", { errorCode: 410 });
        }
        await ctx.promise<Answer>(`answer-${key}`).resolve(answer);
      },
    ),
  },
});
