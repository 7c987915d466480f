import { ExecutionsClient } from "@google-cloud/workflows";
import { PassThroughClient } from "google-auth-library";
import { grpc } from "google-gax";
import { afterEach, beforeEach, expect, test } from "vitest";
import { googleWorkflows } from "../src/index.js";
import { type Harness, harness, LOCATION, newKey, PROJECT, readRequest, signal } from "./harness.js";

let h: Harness;
beforeEach(async () => {
  h = await harness("gRPC");
  h.cloud.deploy({ id: "orders", location: LOCATION });
});
afterEach(() => h.close());

const startWith = (adapter: ReturnType<typeof googleWorkflows>) =>
  adapter.start({ key: newKey(), input: {}, retry: false, signal: signal() });

test("nothing is opened before the first call, and closing before it is fine", async () => {
  const adapter = googleWorkflows({ project: PROJECT, location: LOCATION, workflow: "orders" });
  expect(adapter.engine).toBe("google-workflows");
  expect(adapter.consoleUrl).toBe(
    "https://console.cloud.google.com/workflows/workflow/us-central1/orders/executions?project=demo-project",
  );
  await adapter.close?.();
});

test("your own client is used and left open", async () => {
  const [host, port] = h.server.grpcEndpoint.split(":");
  const client = new ExecutionsClient({
    apiEndpoint: String(host),
    port: Number(port),
    sslCreds: grpc.credentials.createInsecure(),
    authClient: new PassThroughClient(),
    projectId: PROJECT,
  });
  const place = { project: PROJECT, location: LOCATION, workflow: "orders" };
  const adapter = googleWorkflows({ ...place, client, restEndpoint: h.server.restEndpoint, questions: true });
  const { ref } = await startWith(adapter);
  // A running execution with questions on: its callbacks are listed over REST with the client's own credentials.
  expect((await adapter.read(ref, readRequest())).status).toBe("working");
  expect(h.cloud.count("listCallbacks")).toBe(1);
  await adapter.close?.();
  expect((await client.getExecution({ name: String(ref) }))[0].state).toBe("ACTIVE");
  await client.close();
});

test("an adapter may be used again after it was closed", async () => {
  const adapter = h.adapter();
  await startWith(adapter);
  await adapter.close?.();
  await expect(startWith(adapter)).resolves.toHaveProperty("ref");
});
