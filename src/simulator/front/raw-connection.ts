/** A caller's connection below HTTP, for the faults that HTTP servers are built to prevent. */
export interface RawConnection {
  /** Fires when the connection is closed, by whichever side. */
  readonly closed: AbortSignal;
  /** Resolves when there is room for more, or the connection is closed. */
  write(bytes: Uint8Array): Promise<void>;
  /** Closes after what has been written has left. */
  end(): void;
  /** Closes at once with a TCP reset. */
  reset(): void;
}
