import type { Replica, ReplicaFacts } from "../domain/replica.ts";

/** The processes on one database. */
export interface ReplicaStore {
  /**
   * Stores the facts of this process and forgets those that are silent for longer than
   * `keptMs`. Throws `StorageUnavailable`.
   */
  sign(own: ReplicaFacts, keptMs: number): Promise<ReplicasSeen>;
  /** Removes the row of a process. */
  leave(id: string): Promise<void>;
  /** Tells of changes by any gateway until it is stopped, and after each time it may have missed any. */
  watch(watcher: ReplicaWatcher): ReplicaWatch;
}

export interface ReplicasSeen {
  /** This process included. */
  readonly replicas: readonly Replica[];
  /** Epoch of the newest change of keys. */
  readonly keysEpoch: number;
}

export interface ReplicaWatcher {
  /** `epoch` is undefined when changes may have been missed. */
  keysChanged(epoch: number | undefined): void;
  /** Called once when the messages stop, and when they are back. */
  lost(error: unknown): void;
  back(): void;
}

export interface ReplicaWatch {
  stop(): void;
}
