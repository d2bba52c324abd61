import type { KeyRing } from "../keys/key-ring.ts";
import type { Snapshot } from "../snapshot/snapshot.ts";

/** Why a process has no keys, which it needs to serve; undefined: it has them. */
export function whyNoKeys(keys: Pick<KeyRing, "isLoaded" | "isStale">): string | undefined {
  if (keys.isLoaded) return undefined;
  return `keys are not loaded yet${keys.isStale ? ": the database does not answer" : ""}`;
}

type Targets = Pick<Snapshot, "environmentsByHost" | "defaultEnvironment" | "upstreams">;

/** Why no call can be served: no target of any model has a credential. The log has the causes. */
export function whyNoTarget({
  environmentsByHost,
  defaultEnvironment,
  upstreams,
}: Targets): string | undefined {
  const lacking = new Set<string>();
  for (const environment of [defaultEnvironment, ...environmentsByHost.values()]) {
    for (const { targets } of environment?.models.values() ?? []) {
      for (const { upstream } of targets) {
        if (lacking.has(upstream)) continue;
        if (upstreams.get(upstream)?.adapter.whyNoCredential?.() === undefined) return undefined;
        lacking.add(upstream);
      }
    }
  }
  if (lacking.size === 0) return undefined;
  const names = [...lacking].join(", ");
  return `no target of any model has credentials (${names}): run \`sluice doctor\``;
}
