/** The store of limits does not answer, and the plan of a key admits nothing without it. */
export class LimitsClosed extends Error {
  override readonly name = "LimitsClosed";
}
