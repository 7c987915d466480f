import type { Requirement } from "../requirement.js";
import { create } from "./create.js";
import { deadline } from "./deadline.js";
import { errors } from "./errors.js";
import { events } from "./events.js";
import { find } from "./find.js";
import { ids } from "./ids.js";
import { logs } from "./logs.js";
import { payloads } from "./payloads.js";
import { questions } from "./questions.js";
import { race } from "./race.js";
import { read } from "./read.js";
import { recovery } from "./recovery.js";
import { secrets } from "./secrets.js";
import { start } from "./start.js";
import { stop } from "./stop.js";
import { terminal } from "./terminal.js";
import { words } from "./words.js";

const ALL = [
  ...create,
  ...start,
  ...find,
  ...read,
  ...words,
  ...terminal,
  ...stop,
  ...race,
  ...questions,
  ...recovery,
  ...errors,
  ...deadline,
  ...events,
  ...logs,
  ...payloads,
  ...ids,
  ...secrets,
] as const;

/** The id of a requirement. */
export type RequirementId = (typeof ALL)[number]["id"];

/** Everything that an adapter must do. */
export const REQUIREMENTS: readonly Requirement<RequirementId>[] = ALL;
