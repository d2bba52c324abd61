export type CpuMessages = {
  /** The CPU time of the answering process so far, in microseconds. */
  readonly cpu: { readonly ask: undefined; readonly answer: number };
};
