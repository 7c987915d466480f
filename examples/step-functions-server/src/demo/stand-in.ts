/** The two machines by hand, for where no emulator can be installed: what they do is what `state-machines/` says. */
import { setTimeout as delay } from "node:timers/promises";
import { type ProtocolExecution, ProtocolServer } from "@taskferry/step-functions-emulator";
import type { MachineArns } from "./cloud.js";

export async function openStandIn(): Promise<{ server: ProtocolServer; arns: MachineArns }> {
  const server = await ProtocolServer.open();
  const arns = {
    REPORT_MACHINE_ARN: server.createMachine("report", { play: writeReport }),
    DEPLOY_MACHINE_ARN: server.createMachine("deploy", { play: deploy }),
  };
  return { server, arns };
}

async function writeReport(execution: ProtocolExecution): Promise<void> {
  const { topic, chapters, seconds } = JSON.parse(execution.input) as {
    topic: string;
    chapters: string[];
    seconds: number;
  };
  const { main } = execution;
  main.enter("Is there anything to write?", "Choice").exit("Choice");
  if (chapters.length === 0) {
    main.enter("Nothing to write", "Fail");
    const cause = { errorType: "Report.Empty", errorMessage: "A report needs at least one chapter" };
    execution.fail("Report.Empty", JSON.stringify(cause));
    return;
  }
  /** Waits. @returns whether the execution is still there to go on */
  const wait = () => delay(seconds * 1000, undefined, { ref: false }).then(() => execution.isRunning);

  main.enter("Gather sources", "Wait");
  if (!(await wait())) return;
  main.exit("Wait");
  for (const iteration of main.map("Write chapters", chapters.length)) {
    iteration.enter("Write chapter", "Wait");
    if (!(await wait())) return;
    iteration.exit("Wait").enter("Typeset", "Pass").exit("Pass").add("MapIterationSucceeded");
  }
  main.add("MapStateSucceeded").exit("Map").enter("Bind", "Pass").exit("Pass");
  execution.succeed({ topic, chapters: chapters.map((title) => ({ title, pages: 4 })) });
}

async function deploy(execution: ProtocolExecution): Promise<void> {
  const { service, version } = JSON.parse(execution.input) as { service: string; version: string };
  const token = execution.main.waitForToken("Approve", (taskToken) => ({
    MessageBody: {
      taskToken,
      message: `Where shall ${service} ${version} go?`,
      schema: {
        type: "object",
        properties: {
          environment: { type: "string", enum: ["staging", "production"] },
          note: { type: "string" },
        },
        required: ["environment"],
      },
    },
  }));
  while (token.open) await delay(20, undefined, { ref: false });
  if (!execution.isRunning) return;
  execution.main.exit();
  const approval = execution.events.findLast(({ type }) => type === "TaskSucceeded");
  const details = approval?.taskSucceededEventDetails as { output: string } | undefined;
  execution.main.enter(details ? "Roll out" : "Refused", "Pass").exit("Pass");
  execution.succeed(
    details
      ? { deployed: true, service, version, environment: JSON.parse(details.output).environment }
      : { deployed: false, service, version },
  );
}
