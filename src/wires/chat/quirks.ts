export const quirkNames = [
  "ignores_stream",
  "streams_only",
  "one_choice",
  "no_image_urls",
  "thoughts_as_reasoning",
  "needs_thoughts",
  "needs_signatures",
] as const;

export type Quirk = (typeof quirkNames)[number];

/**
 * What servers of the chat wire do that OpenAI does not, and that no answer shows in time: how a request
 * must be written, or how long its answer may take. Deviations of answers are read without being named.
 */
export const quirks: Readonly<Record<Quirk, string>> = {
  ignores_stream:
    "A stream comes only when the model has written all of it, so its first byte has no limit.",
  streams_only: "Whole answers are asked for as streams, which Sluice joins.",
  one_choice: "Each choice of `n` is a request of its own.",
  no_image_urls: "Images are sent as data only; `image_fetch` gets those with an address.",
  thoughts_as_reasoning: "Thoughts go back as `reasoning`, not as `reasoning_content`.",
  needs_thoughts: "Messages with tool calls get an empty `reasoning_content` if they have none.",
  needs_signatures:
    "The first of a message's tool calls gets Google's mark for a call that another model made, if it " +
    "is not signed.",
};
