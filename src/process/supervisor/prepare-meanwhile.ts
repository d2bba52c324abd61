/** How long the message to begin may take to arrive when it is sent at once. */
const restMs = 200;

/** Runs `prepare` if there is time for it; undefined when `begun` resolved at once. */
export async function prepareMeanwhile<Prepared>(
  begun: Promise<unknown>,
  prepare: () => Promise<Prepared>,
): Promise<Prepared | undefined> {
  const hasBegun = await Promise.race([begun.then(() => true), Bun.sleep(restMs)]);
  return hasBegun === true ? undefined : prepare();
}
