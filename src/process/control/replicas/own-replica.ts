import { hostname } from "node:os";
import type { RandomBytes } from "../../../domain/keys/base62.ts";
import type { Config } from "../../../config/config.ts";
import { identityOfValkey } from "../../../domain/addresses.ts";
import { createKeyDigest, type Peppers } from "../../../domain/keys/peppers.ts";
import type { ReplicaFacts } from "../../../domain/replica.ts";
import type { DataFolder } from "../../../store/installation/data-folder.ts";
import { ownFacts } from "../../own-facts.ts";

/** What changes while a control process runs. */
export interface ReplicaState extends Pick<
  ReplicaFacts,
  "configuredAt" | "keysEpoch" | "workers" | "notReady" | "degraded"
> {
  /** The text of the configuration; undefined if there is no file. */
  readonly configText: string | undefined;
}

export interface OwnReplicaOptions {
  readonly folder: DataFolder;
  readonly peppers: Peppers;
  readonly limitStore: Config["limits"]["store"];
  readonly random: RandomBytes;
  /** Milliseconds since the epoch. */
  readonly startedAt: number;
  readonly state: () => ReplicaState;
  readonly adminUrl: () => string;
}

const digestLength = 12;

/** Reads what this gateway tells the others. */
export function createOwnReplica(options: OwnReplicaOptions): () => ReplicaFacts {
  const { folder, peppers, limitStore, random, startedAt, state, adminUrl } = options;
  const name = hostname();
  const { version } = ownFacts();
  let id: string | undefined;
  let limitsDigest: string | undefined;
  const pepperMarks = peppers.all.map(({ mark }) => mark.slice(0, digestLength)).join(",");
  // Keyed, because a file may contain secrets.
  const digest = remember((text: string) => {
    const bytes = peppers.first.digest(`configuration ${text}`);
    return Buffer.from(bytes).toString("hex").slice(0, digestLength);
  });
  return () => {
    const { configText, ...current } = state();
    // With the host's name, as data directories may be copied with an image.
    id ??= `${folder.replicaId(random)}@${name}`;
    const configDigest = configText === undefined ? undefined : digest(configText);
    limitsDigest ??= digestOfLimits(limitStore, folder.readId());
    const compared = { configDigest, limitsDigest, pepperMarks };
    return { id, name, version, startedAt, ...current, ...compared, adminUrl: adminUrl() };
  };
}

/** Keyed by what all gateways on the database have in common, even if their peppers differ. */
function digestOfLimits(
  store: OwnReplicaOptions["limitStore"],
  installation: string | undefined,
): string | undefined {
  if (store === "memory") return store;
  if (installation === undefined) return undefined;
  const bytes = createKeyDigest(installation)(`limits ${identityOfValkey(store.url.reveal())}`);
  return Buffer.from(bytes).toString("hex").slice(0, digestLength);
}

/** The last result is kept. */
function remember(make: (text: string) => string): (text: string) => string {
  let last = { text: "", made: make("") };
  return (text) => {
    if (text !== last.text) last = { text, made: make(text) };
    return last.made;
  };
}
