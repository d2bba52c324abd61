/** What a listener knows of the connection behind a request. */
export interface Connections {
  /**
   * The idle timer belongs to the connection, not to the request: what is paused and never resumed
   * keeps an idle connection open for ever.
   */
  pauseIdleTimer(request: Request): void;
  resumeIdleTimer(request: Request): void;
  /** Who is at the other end; undefined once it has left. */
  peerAddress(request: Request): string | undefined;
}
