import type { Config } from "./config/config.ts";
import { loadPepper } from "./config/pepper.ts";
import type { RandomBytes } from "./domain/base62.ts";
import { createKeyDigest, type KeyDigest } from "./pipeline/authenticate.ts";

export interface LoadedDigest {
  readonly digest: KeyDigest;
  /** Where a pepper was made, when there was none. */
  readonly newPepperPath: string | undefined;
}

/** The digest of API keys, under the configured pepper or the one in the data directory. */
export function loadDigest(
  { auth, dataDir }: Pick<Config, "auth" | "dataDir">,
  random: RandomBytes,
): LoadedDigest {
  let newPepperPath: string | undefined;
  const onCreated = (path: string): void => {
    newPepperPath = path;
  };
  const pepper = loadPepper({ configured: auth.pepper, dataDir, random, onCreated });
  return { digest: createKeyDigest(pepper.reveal()), newPepperPath };
}
