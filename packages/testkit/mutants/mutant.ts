import {
  EngineError,
  type ErrorVerdict,
  type RunRef,
  type RunState,
  type WorkflowAdapter,
} from "@taskferry/core";
import type { RequirementId } from "@taskferry/testkit";
import { idOf, type ScriptedAdapter } from "./adapter.js";
import { hasEnded, NativeError, type NativeRun, type ScriptedEngine } from "./engine.js";

/** The right adapter with one fault. */
export interface Mutant {
  /** What is wrong with it. */
  readonly fault: string;
  /** The one requirement that has to notice. */
  readonly breaks: RequirementId;
  /** What is different from the right adapter. Called for each instance: what it closes over is the instance's memory. */
  mutate?(right: ScriptedAdapter, engine: ScriptedEngine): Partial<WorkflowAdapter>;
  /** All of its engines have the same runs. */
  readonly sharesRuns?: boolean;
}

/** Changes what reads tell. */
export function telling(
  right: ScriptedAdapter,
  change: (state: RunState, ref: RunRef) => RunState,
): Partial<WorkflowAdapter> {
  return { read: async (ref, request) => change(await right.read(ref, request), ref) };
}

/** Throws something else where a call throws this native error. */
export async function rethrow<Value>(
  call: Promise<Value>,
  code: string,
  verdict: ErrorVerdict & { message?: string },
): Promise<Value> {
  return call.catch((error: unknown) => {
    if (!(error instanceof NativeError) || error.code !== code) throw error;
    throw new EngineError({ message: code, ...verdict });
  });
}

/** Changes the verdict on one native error. */
export function explaining(
  right: ScriptedAdapter,
  code: string,
  change: (verdict: ErrorVerdict) => ErrorVerdict,
): Partial<WorkflowAdapter> {
  return {
    explain: (error) => {
      const verdict = right.explain(error);
      return verdict && error instanceof NativeError && error.code === code ? change(verdict) : verdict;
    },
  };
}

/** The native run behind a ref, looked at behind the adapter's back. */
export function nativeOf(engine: ScriptedEngine, ref: RunRef): NativeRun | undefined {
  return engine.runs.get(idOf(ref) ?? "");
}

/** Whether the run behind a ref goes on. */
export function isActive(engine: ScriptedEngine, ref: RunRef): boolean {
  const run = nativeOf(engine, ref);
  return run !== undefined && !hasEnded(run);
}
