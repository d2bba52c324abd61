import type { Replica, ReplicaFacts } from "../domain/replica.ts";

/** The gateways on one database, of a backend that can have several. */
export interface ReplicaStore {
  /**
   * Stores the facts of this gateway and forgets gateways that are silent for longer than
   * `keptMs`. Throws `StorageUnavailable`.
   */
  sign(own: ReplicaFacts, keptMs: number): Promise<ReplicasSeen>;
  /** Removes this gateway, unless a later process of it has signed. */
  leave(own: Pick<ReplicaFacts, "id" | "startedAt">): Promise<void>;
  /** Tells of changes by any gateway until it is stopped, and after each time it may have missed any. */
  watch(watcher: ReplicaWatcher): ReplicaWatch;
}

export interface ReplicasSeen {
  /** This gateway included. */
  readonly replicas: readonly Replica[];
  /** Epoch of the newest change of keys. */
  readonly keysEpoch: number;
}

export interface ReplicaWatcher {
  /** `epoch` is undefined when changes may have been missed. */
  keysChanged(epoch: number | undefined): void;
  /** A gateway has applied changes of keys. */
  replicasChanged(): void;
  /** Called once when the messages stop, and when they are back. */
  lost(error: unknown): void;
  back(): void;
}

export interface ReplicaWatch {
  stop(): void;
}
