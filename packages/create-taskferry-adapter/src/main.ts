#!/usr/bin/env node
import { basename, resolve } from "node:path";
import { CreateAdapterError, createAdapter } from "./create-adapter.js";

const [given, ...rest] = process.argv.slice(2);
if (given === undefined || given.startsWith("-") || rest.length > 0) {
  console.error("Usage: npm create taskferry-adapter my-engine");
  process.exitCode = 2;
} else {
  const folder = resolve(given);
  const name = basename(folder).replace(/^taskferry-/, "");
  try {
    await createAdapter({ name, folder });
    console.log(`taskferry-${name} is in ${given}. It is green on an engine in memory; its README says what to replace:

  cd ${given}
  npm install
  npm test
`);
  } catch (error) {
    if (!(error instanceof CreateAdapterError)) throw error;
    console.error(error.message);
    process.exitCode = 1;
  }
}
