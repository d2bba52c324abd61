import { hashText } from "../answer/random.ts";

export interface TokenLogprob {
  readonly token: string;
  readonly logprob: number;
  readonly bytes: readonly number[];
  readonly top_logprobs: readonly Omit<TokenLogprob, "top_logprobs">[];
}

const alternativeWords =
  " the, a, one, this, and, it, of, to, in, is, that, for, with, as, on, at, by, or".split(",");

/** Made-up log probabilities that look like real ones: the token itself is the likeliest. */
export function tokenLogprob(token: string, alternatives: number): TokenLogprob {
  const logprob = -(hashText(token) % 1000) / 1500;
  const others = [".", ",", ...alternativeWords].filter((word) => word !== token);
  const named = [token, ...others].slice(0, alternatives);
  return {
    ...plain(token, logprob),
    top_logprobs: named.map((word, rank) => plain(word, logprob - rank * 1.375)),
  };
}

function plain(token: string, logprob: number): Omit<TokenLogprob, "top_logprobs"> {
  return { token, logprob, bytes: [...Buffer.from(token)] };
}
