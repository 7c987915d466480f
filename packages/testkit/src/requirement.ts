import type { WorkflowAdapter } from "@taskferry/core";
import type { BoundDrive, DriveName } from "./drive.js";
import type { Scene } from "./scene.js";

/** What a requirement is about. There is one file per behaviour. */
export type Behaviour =
  | "create"
  | "start"
  | "find"
  | "read"
  | "words"
  | "terminal"
  | "stop"
  | "race"
  | "questions"
  | "recovery"
  | "errors"
  | "deadline"
  | "events"
  | "logs"
  | "payloads"
  | "ids"
  | "secrets";

/** A part of the contract that an adapter may leave out. */
export type Capability = "startsOnce" | "find" | "stop" | "answer" | "events" | "logs" | "explain" | "close";

/** The scene that a requirement plays in, with what it said it needs. */
export type SceneWith<Situation extends DriveName, Part extends Capability> = Omit<
  Scene,
  "adapter" | "drive"
> & {
  readonly adapter: WorkflowAdapter & Required<Pick<WorkflowAdapter, Part>>;
  readonly drive: Required<Pick<BoundDrive, Situation>>;
};

/** One thing that an adapter must do, as data. */
export interface Requirement<Id extends string = string> {
  /** Stable. Tests are named after it and skips name it. */
  readonly id: Id;
  readonly behaviour: Behaviour;
  /** What is required, in one sentence. */
  readonly says: string;
  /** The place in the contract (`adapter.ts` of `@taskferry/core`) that it comes from. */
  readonly source: string;
  /** The native situations it needs. */
  readonly drive: readonly DriveName[];
  /** The parts of the contract it is about. It does not apply to an adapter without them. */
  readonly adapter: readonly Capability[];
  /** Plays it. Throws when the adapter does not do it. */
  check(scene: Scene): Promise<void>;
}

/** Makes a {@link Requirement} whose check sees exactly what it said it needs. */
export function requirement<
  const Id extends string,
  const Situation extends DriveName = never,
  const Part extends Capability = never,
>(definition: {
  readonly id: Id;
  readonly behaviour: Behaviour;
  readonly says: string;
  readonly source: string;
  readonly drive?: readonly Situation[];
  readonly adapter?: readonly Part[];
  readonly check: (scene: SceneWith<Situation, Part>) => Promise<void>;
}): Requirement<Id> {
  return {
    drive: [],
    adapter: [],
    ...definition,
    // The runner plays it only after it has seen that all of it is there.
    check: (scene) => definition.check(scene as unknown as SceneWith<Situation, Part>),
  };
}
