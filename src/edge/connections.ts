/** What a listener knows of the connection behind a request. */
export interface Connections {
  /** Value of the `keep-alive` header: for how long an idle connection may be used again. */
  readonly keepAliveHint: string;
  /**
   * The idle timer belongs to the connection, not to the request: what is paused and never resumed
   * keeps an idle connection open for ever.
   */
  pauseIdleTimer(request: Request): void;
  resumeIdleTimer(request: Request): void;
  /** Closes a connection whose answer broke off, within seconds. */
  cutSoon(request: Request): void;
  /** Who is at the other end; undefined once it has left. */
  peerAddress(request: Request): string | undefined;
}
