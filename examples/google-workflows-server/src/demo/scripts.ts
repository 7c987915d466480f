/** The two workflows by hand, because no emulator for this machine runs their source: what they do is what `workflows/` says. */
import { setTimeout as delay } from "node:timers/promises";
import { type ScriptContext, WorkflowFailure } from "@taskferry/google-workflows-emulator";

export async function shipOrder({ args, step }: ScriptContext): Promise<unknown> {
  const { orderId, item, quantity, secondsPerStep } = args as {
    orderId: string;
    item: string;
    quantity: number;
    secondsPerStep: number;
  };
  step("check_stock");
  if (quantity > 100) {
    step("refuse");
    const message = `Only 100 of ${item} are in stock`;
    throw new WorkflowFailure({
      payload: JSON.stringify({ tags: ["OutOfStock"], message, quantity }),
      stackTrace: { elements: [{ step: "refuse", routine: "main", position: { line: "33" } }] },
    });
  }
  for (const name of ["reserve", "pack", "hand_over", "deliver"]) {
    step(name);
    await delay(secondsPerStep * 1000, undefined, { ref: false });
  }
  step("receipt");
  return { orderId, item, quantity, trackingId: `TF-${orderId}` };
}

export async function refundOrder({ args, step, endpoint, waitFor }: ScriptContext): Promise<unknown> {
  const { orderId, amount } = args as { orderId: string; amount: number };
  step("create_approval");
  const approval = endpoint("POST");
  step("create_board");
  const board = endpoint("POST");
  step("ask");
  const note = {
    callback: `https://workflowexecutions.googleapis.com/v1/callbacks/${approval.id}`,
    message: `Refund ${amount} EUR for order ${orderId}?`,
    schema: {
      type: "object",
      properties: { reason: { type: "string", description: "Why, in the customer's file" } },
      required: ["reason"],
    },
  };
  board.payloads.push(JSON.stringify({ taskferry: note }));
  step("wait_for_approval");
  const { action, content } = (await waitFor(approval)) as { action: string; content?: { reason: string } };
  step("decide");
  return action === "accept"
    ? { refunded: true, orderId, amount, reason: content?.reason }
    : { refunded: false, orderId };
}
