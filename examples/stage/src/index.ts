export { type Answerer, openClients, textOf, withClients } from "./clients.js";
export { PlainClient } from "./plain-client.js";
export { type ServerProcess, startServer } from "./server-process.js";
export { check, play, tell, verdict } from "./timeline.js";
export { until } from "./until.js";
