/** Messages of the size of those by which a worker asks control for the limits of a call. */
export type BenchAsks = {
  readonly acquire: { readonly ask: Asked; readonly answer: Answered };
  /** The CPU time of the answering process so far, in microseconds. */
  readonly cpu: { readonly ask: undefined; readonly answer: number };
};

export interface Asked {
  readonly callId: string;
  readonly scopes: readonly Scope[];
}

interface Scope {
  readonly id: string;
  readonly cost: number;
  readonly limit: number;
}

export interface Answered {
  readonly isAdmitted: boolean;
  readonly states: readonly { readonly remaining: number; readonly resetMs: number }[];
}

export const jsonKinds: ReadonlySet<string> = new Set(["acquire"]);

export const asked: Asked = {
  callId: "req_01k9m2v7q8w3x5z6y4t1",
  scopes: [
    { id: "key_0123456789abcdef:requests", cost: 1, limit: 1_000 },
    { id: "key_0123456789abcdef:tokens", cost: 812, limit: 2_000_000 },
  ],
};

export function answerOf({ scopes }: Asked): Answered {
  const states = scopes.map(({ cost, limit }) => ({ remaining: limit - cost, resetMs: 59_000 }));
  return { isAdmitted: true, states };
}
