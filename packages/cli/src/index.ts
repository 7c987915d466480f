export { type Configuration, readConfiguration } from "./config.js";
export { loadWorkflows, type RunningServer, serve } from "./serve.js";
