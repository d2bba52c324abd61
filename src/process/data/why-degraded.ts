import { joinLacks } from "../../domain/process-status.ts";
import { howDegraded, type KeyRing } from "../../keys/key-ring.ts";

/** What a process that can serve lacks, for operators; undefined: nothing. */
export function whyDegraded(keys: Pick<KeyRing, "isStale">, isAlone: boolean): string | undefined {
  const ofLimits = isAlone ? "limits.store cannot be asked; limits are not shared" : undefined;
  return joinLacks([howDegraded(keys), ofLimits]);
}

/** Why a process has no keys, which it needs to serve; undefined: it has them. */
export function whyNoKeys({
  isLoaded,
  isStale,
}: Pick<KeyRing, "isLoaded" | "isStale">): string | undefined {
  if (isLoaded) return undefined;
  return `keys are not loaded yet${isStale ? ": the database does not answer" : ""}`;
}
