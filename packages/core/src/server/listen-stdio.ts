/** Listens for tasks over stdio: a transport between the SDK's stdio entry and the pipe, with a relay for each listen. */
import type { JSONRPCMessage, MessageExtraInfo, Transport } from "@modelcontextprotocol/server";
import { isJsonObject, type Json, type JsonObject } from "../contract/json.js";
import type { Owner } from "../contract/owner.js";
import type { TaskEngine } from "../engine/engine.js";
import { SUBSCRIPTION_ID } from "../wire/codec.js";
import { ListenRelay, listenedTaskIds } from "./listen.js";

/** Wraps a transport. Everything but listens for tasks passes through untouched. */
export class ListeningTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage, extra?: MessageExtraInfo) => void;
  private readonly relays = new Map<Json, ListenRelay>();

  constructor(
    private readonly wire: Transport,
    private readonly engine: TaskEngine,
    private readonly owner: Owner,
  ) {}

  async start(): Promise<void> {
    this.wire.onclose = () => {
      this.endAll();
      this.onclose?.();
    };
    this.wire.onerror = (error) => this.onerror?.(error);
    this.wire.onmessage = (message: JSONRPCMessage, extra?: MessageExtraInfo) => this.receive(message, extra);
    await this.wire.start();
  }

  async send(message: JSONRPCMessage): Promise<void> {
    const outgoing = message as unknown as JsonObject;
    const relay = this.relayOf(outgoing);
    if (relay === undefined) return this.wire.send(message);
    const acknowledges = outgoing.method === "notifications/subscriptions/acknowledged";
    if (acknowledges && relay.refusal !== undefined) return this.refuse(outgoing, relay.refusal);
    const relayed = await relay.relay(outgoing);
    if (relayed === undefined) return;
    if ("id" in outgoing) this.relays.delete(outgoing.id ?? null);
    await this.wire.send(relayed as unknown as JSONRPCMessage);
    if (acknowledges) relay.begin();
  }

  async close(): Promise<void> {
    this.endAll();
    await this.wire.close();
  }

  private receive(message: JSONRPCMessage, extra?: MessageExtraInfo): void {
    const incoming = message as unknown as JsonObject;
    if (incoming.method === "notifications/cancelled" && isJsonObject(incoming.params)) {
      this.end(incoming.params.requestId ?? null);
    }
    const id = incoming.id;
    if (listenedTaskIds(incoming) === undefined || id === undefined) {
      this.onmessage?.(message, extra);
      return;
    }
    const relay = new ListenRelay(incoming, this.engine, this.owner, (note) => {
      void this.wire.send(note as unknown as JSONRPCMessage).catch((error: Error) => this.onerror?.(error));
    });
    this.relays.set(id, relay);
    this.onmessage?.(relay.forEntry() as unknown as JSONRPCMessage, extra);
  }

  /** The listen that an outgoing message belongs to: by subscription id, or as the answer to it. */
  private relayOf(message: JsonObject): ListenRelay | undefined {
    if ("id" in message) return this.relays.get(message.id ?? null);
    const meta =
      isJsonObject(message.params) && isJsonObject(message.params._meta) ? message.params._meta : {};
    return SUBSCRIPTION_ID in meta ? this.relays.get(meta[SUBSCRIPTION_ID] ?? null) : undefined;
  }

  /** The entry has opened the stream: close it again on its side, and answer the error. */
  private async refuse(acknowledgement: JsonObject, refusal: JsonObject): Promise<void> {
    const meta = (acknowledgement.params as JsonObject)._meta as JsonObject;
    const requestId = meta[SUBSCRIPTION_ID] ?? null;
    this.end(requestId);
    this.onmessage?.({
      jsonrpc: "2.0",
      method: "notifications/cancelled",
      params: { requestId: requestId as string | number },
    });
    await this.wire.send(refusal as unknown as JSONRPCMessage);
  }

  private end(id: Json): void {
    this.relays.get(id)?.end();
    this.relays.delete(id);
  }

  private endAll(): void {
    for (const relay of this.relays.values()) relay.end();
    this.relays.clear();
  }
}
