/** How long a process that is told to begin at once may take to hear of it. */
const restMs = 200;

/** What was prepared because there was time for it, or nothing when `begun` resolved at once. */
export async function prepareMeanwhile<Prepared>(
  begun: Promise<unknown>,
  prepare: () => Promise<Prepared>,
): Promise<Prepared | undefined> {
  const hasBegun = await Promise.race([begun.then(() => true), Bun.sleep(restMs)]);
  return hasBegun === true ? undefined : prepare();
}
