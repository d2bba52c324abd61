/** How far a request came before its connection failed. */
export type FailedStage =
  /** No connection could be opened, so nothing was sent. */
  | "connecting"
  /** Sent, but no byte of an answer arrived: the server may have processed it. */
  | "unanswered"
  /** The answer had begun. */
  | "answering";

/** The connection of a request failed, or its answer violates HTTP. */
export class ClientError extends Error {
  override readonly name = "ClientError";
  /** A code of the runtime, such as `ECONNREFUSED`, or of the client. */
  readonly code: string;
  readonly stage: FailedStage;

  constructor(code: string, stage: FailedStage, options?: ErrorOptions) {
    super(code, options);
    this.code = code;
    this.stage = stage;
  }
}
