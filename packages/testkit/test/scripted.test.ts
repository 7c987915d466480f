import { ScriptedEngine } from "../mutants/engine.js";
import { scriptedDrive, scriptedSubject } from "../mutants/subject.js";
import { testAdapter } from "../src/index.js";

testAdapter({
  name: "the right adapter",
  create: () => scriptedSubject(new ScriptedEngine()),
  drive: scriptedDrive,
});
