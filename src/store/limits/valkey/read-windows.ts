import type { LimitState } from "../../../domain/limits/limit-scope.ts";
import { countedSlotsOf, heldTo } from "../decision.ts";
import type { ValkeyClient } from "./client.ts";
import { readScript } from "./limit-scripts.ts";
import { readStates } from "./read-reply.ts";
import type { RequestWindows } from "./scopes.ts";

/** So few that no decision waits for the script. */
const readAtOnce = 100;

/** The states that the server has; without those that it does not tell. Changes nothing there. */
export async function readWindows(
  client: Pick<ValkeyClient, "run">,
  asked: readonly RequestWindows[],
): Promise<ReadonlyMap<RequestWindows, LimitState>> {
  const states = new Map<RequestWindows, LimitState>();
  for (const those of Map.groupBy(asked, ({ sinceKey }) => sinceKey).values()) {
    for (let first = 0; first < those.length; first += readAtOnce) {
      const batch = those.slice(first, first + readAtOnce);
      const keys = batch.flatMap((names) => names.keys);
      const parameters = batch
        .flatMap(({ scopes }) => scopes)
        .flatMap((scope) => [countedSlotsOf(scope), String(heldTo(scope))]);
      // Whoever decides notices a loss; this only looks.
      const reply = await client.run(readScript, keys, parameters).catch(() => undefined);
      if (reply === undefined) break;
      const read = readStates(
        reply,
        batch.map(({ scopes }) => scopes),
      );
      for (const [index, names] of batch.entries()) {
        const state = read[index];
        if (state !== undefined) states.set(names, state);
      }
    }
  }
  return states;
}
