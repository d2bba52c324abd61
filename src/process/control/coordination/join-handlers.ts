import type { ProcessJoins } from "../../../store/coordinator/memory/joins.ts";
import type { Handlers } from "../../link/link.ts";
import type { JoinMessages } from "../../link/messages.ts";

/** Resolves once control decides for the worker; undefined from then on. */
export type Ready = () => Promise<void> | undefined;

/** Decides which calls a worker runs. */
export function joinHandlers(joins: ProcessJoins, ready: Ready): Handlers<JoinMessages> {
  return {
    "joins.claim": (request) => ready()?.then(() => "ended" as const) ?? joins.claim(request),
    "joins.release": (id) => ready()?.then(() => joins.release(id)) ?? joins.release(id),
    "joins.unsaved": (id) => ready()?.then(() => joins.unsaved(id)) ?? joins.unsaved(id),
  };
}
