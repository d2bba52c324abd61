import type { AdjustedFields } from "../../domain/chat/answer.ts";
import type { Conversation } from "../../domain/chat/conversation.ts";
import type { Destination } from "../../routing/candidates.ts";
import type { Call } from "../../snapshot/call.ts";
import type { ChatCodec, ValueOrigin } from "../../upstreams/adapter.ts";
import { guardedCodec, type NamedState } from "./held-state.ts";
import { OpaqueValues, type Opened } from "./opaque-values.ts";
import type { ValueTags } from "./value-tags.ts";

/** What only a destination understands, for the caller of a call. */
export function opaqueValuesOf(
  destination: Destination,
  { caller }: Pick<Call, "caller">,
  tags: ValueTags,
): OpaqueValues {
  const { accountId } = caller.key;
  return new OpaqueValues(tags.of({ origin: originOf(destination), accountId }));
}

function originOf({ model, target, upstream }: Destination): ValueOrigin {
  const { chat, provider = "" } = upstream.adapter;
  const named = { alias: model.alias, model: target.model, upstream: upstream.name };
  return chat?.origin?.(named) ?? { wire: provider, model: target.model, account: upstream.name };
}

interface CallerTerms {
  readonly call: Pick<Call, "caller">;
  readonly tags: ValueTags;
  /** What the caller's request names of upstreams; see `heldStateIn`. */
  readonly held: readonly NamedState[];
}

/**
 * The codec of a destination for the caller of a call. Opaque values leave in tags, and return to
 * their origin without. Ids of what the upstream holds are refused unless the caller's account holds
 * it. The request names the model whose target it is: the caller may have used another name, or
 * asked for a model that this one stands in for.
 */
export function callerCodec(
  own: ChatCodec,
  destination: Destination,
  { call, tags, held }: CallerTerms,
): ChatCodec {
  const codec = guardedCodec(own, held, { destination, call });
  const values = opaqueValuesOf(destination, call, tags);
  const { alias } = destination.model;
  const open = (asked: Conversation): Opened => {
    const { request, droppedFrom } = values.open(asked);
    return {
      request: request.model === alias ? request : { ...request, model: alias },
      droppedFrom,
    };
  };
  const { takesChoiceCount, takesImageUrls, countTokens } = codec;
  return {
    takesChoiceCount,
    takesImageUrls,
    encode(request, model) {
      const opened = open(request);
      const exchange = codec.encode(opened.request, model);
      return {
        ...exchange,
        adjusted: adjustedBy(opened, exchange.adjusted),
        decode: (answer) => values.tagResult(exchange.decode(answer)),
      };
    },
    encodeStream(request, model) {
      const opened = open(request);
      const exchange = codec.encodeStream(opened.request, model);
      return {
        ...exchange,
        adjusted: adjustedBy(opened, exchange.adjusted),
        tagEvents: (events) => values.tagEvents(events),
      };
    },
    ...(countTokens !== undefined && {
      countTokens: (request, model) => countTokens(open(request).request, model),
    }),
  };
}

function adjustedBy(
  { droppedFrom }: Opened,
  adjusted: AdjustedFields | undefined,
): AdjustedFields | undefined {
  if (droppedFrom === undefined) return adjusted;
  return new Map([...(adjusted ?? []), [droppedFrom, "thoughts-dropped"]]);
}
