/** A client that knows no tasks and cannot be asked: the v1 SDK's, as most hosts use it. */
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { CallToolResultSchema } from "@modelcontextprotocol/sdk/types.js";
import type { JsonObject, ToolResult } from "@taskferry/client";

export class PlainClient {
  private constructor(private readonly client: Client) {}

  static async connect(url: string): Promise<PlainClient> {
    const client = new Client({ name: "plain-client", version: "0" });
    await client.connect(new StreamableHTTPClientTransport(new URL(url)));
    return new PlainClient(client);
  }

  /** The names of the server's tools. */
  async tools(): Promise<string[]> {
    const { tools } = await this.client.listTools();
    return tools.map(({ name }) => name);
  }

  /** One ordinary call. `onProgress` hears the messages of its progress. */
  async call(name: string, args: JsonObject, onProgress?: (message: string) => void): Promise<ToolResult> {
    const result = await this.client.callTool({ name, arguments: { ...args } }, CallToolResultSchema, {
      timeout: 90_000,
      ...(onProgress !== undefined && { onprogress: ({ message = "" }) => onProgress(message) }),
    });
    return result as ToolResult;
  }

  close(): Promise<void> {
    return this.client.close();
  }
}
