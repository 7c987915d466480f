/** One client of each generation of MCP Tasks, and what stories do with them. */
import {
  type ConnectOptions,
  connect,
  type Generation,
  type TaskClient,
  type ToolResult,
} from "@taskferry/client";

/** Answers the questions that a client is asked. */
export type Answerer = NonNullable<ConnectOptions["answer"]>;

const GENERATIONS: readonly Generation[] = ["draft", "2025-11-25", "2026-07-28"];

/** Connects one client of each generation. Each asks `answerer` with its own name. */
export function openClients(
  url: string,
  answerer: (generation: Generation) => Answerer = neverAsked,
): Promise<TaskClient[]> {
  return Promise.all(
    GENERATIONS.map((generation) => connect(url, { generation, answer: answerer(generation) })),
  );
}

/** Plays one part per client, all at the same time, and closes them. */
export async function withClients(
  clients: readonly TaskClient[],
  play: (client: TaskClient, index: number) => Promise<void>,
): Promise<void> {
  await Promise.all(clients.map(play));
  await Promise.all(clients.map((client) => client.close()));
}

/** A result's text blocks. */
export function textOf(result: ToolResult | undefined): string {
  return (result?.content ?? []).map(({ text }) => (typeof text === "string" ? text : "")).join("\n");
}

/** A client that could be asked, in a story where nobody has anything to ask. */
function neverAsked(generation: Generation): Answerer {
  return ({ message }) => {
    throw new Error(`${generation} was asked: ${message}`);
  };
}
