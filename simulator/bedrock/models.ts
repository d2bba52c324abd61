import { BedrockError, invalid } from "./errors.ts";
import { allCapableRow, type CapabilityRow, capabilityRows, hasEnded } from "./capabilities.ts";
import { texts } from "../faults/bedrock-modes.ts";
import { checkShape } from "./shapes.ts";

/** Prefixes that turn a foundation model's id into a profile, with the regions that have it. */
const profileRegions: Readonly<Record<string, RegExp>> = {
  us: /^us-(?!gov|iso)/,
  "us-gov": /^us-gov-/,
  eu: /^eu-/,
  apac: /^(?:ap-|me-central-1$)/,
  jp: /^ap-northeast-[13]$/,
  au: /^ap-southeast-[24]$/,
  ca: /^ca-/,
  in: /^ap-south-/,
  global: /./,
};

/** The only models that have national profiles. */
const national = /^(?:anthropic\.claude-[a-z]+-(?:4-(?:[5-9]|\d\d)(?!\d)|[5-9])|amazon\.nova-2-)/;
const profileModels: Readonly<Record<string, RegExp>> = { jp: national, au: national };

const modelIdPattern =
  "arn:aws(?:-[^:]+)?:(?:bedrock|sagemaker):[a-z0-9-]{1,20}:(?:[0-9]{12})?:[a-z-]+/[a-zA-Z0-9-:./]+" +
  "|[a-zA-Z0-9-:.]+";

/** Names used by tests; these models support everything. */
const testModels = /^(?:simulated-|fault-|sound)/;

/** The models, and what each supports. */
export class ModelRegistry {
  readonly #models: Readonly<Record<string, Partial<CapabilityRow>>>;
  readonly #region: string | undefined;
  readonly #modelsAsOf: number | undefined;

  /** `models`: by id or ARN, overrides of the model's row. */
  constructor(options: {
    readonly models: Readonly<Record<string, Partial<CapabilityRow>>>;
    readonly region: string | undefined;
    readonly modelsAsOf?: number | undefined;
  }) {
    this.#models = options.models;
    this.#region = options.region;
    this.#modelsAsOf = options.modelsAsOf;
  }

  /** Throws `BedrockError` for an id that names no model. */
  resolve(model: string): CapabilityRow {
    checkModelId(model, 2048);
    const name = readName(model);
    const row = this.#row(model, name);
    this.#checkRegion(model);
    const { prefix } = name;
    if (prefix !== undefined) {
      const isHere = this.#region === undefined || profileRegions[prefix]?.test(this.#region);
      const isOffered = row.hasProfiles && (profileModels[prefix]?.test(name.id ?? "") ?? true);
      if (isHere !== true || !isOffered) throw unknownModel();
    } else if (row.isProfileOnly && name.id !== undefined) {
      throw invalid(texts.onDemand.replace("MODEL", model));
    }
    if (row.lifecycle !== "active") {
      const text = row.lifecycle === "legacy" ? texts.legacy : texts.ended;
      throw new BedrockError("ResourceNotFoundException", text);
    }
    return row;
  }

  /** Counting supports foundation models, even if they are called through profiles only. */
  resolveForCounting(model: string): CapabilityRow {
    checkModelId(model, 256);
    const name = readName(model);
    if (name.id === undefined || name.prefix !== undefined) throw unknownModel();
    const row = this.#row(model, name);
    if (!row.countTokens) throw invalid("The provided model doesn't support counting tokens.");
    return row;
  }

  /** The resource of an ARN exists in one region. */
  #checkRegion(model: string): void {
    const [, region] = /^arn:[^:]*:[^:]*:([^:]+):/.exec(model) ?? [];
    if (region !== undefined && region !== (this.#region ?? region)) throw unknownModel();
  }

  #row(model: string, { id }: ModelName): CapabilityRow {
    const override = this.#models[model];
    const row = id === undefined ? allCapableRow : rowOf(id);
    if (row === undefined && override === undefined) throw unknownModel();
    const asOf = this.#modelsAsOf;
    const isEnded = asOf !== undefined && id !== undefined && hasEnded(id, asOf);
    return { ...(row ?? allCapableRow), ...(isEnded && { lifecycle: "end-of-life" }), ...override };
  }
}

interface ModelName {
  /** The foundation model's id; undefined if an ARN does not contain it. */
  readonly id: string | undefined;
  /** The prefix of a cross-region profile. */
  readonly prefix: string | undefined;
}

function readName(model: string): ModelName {
  const [, type, resource = ""] = /^arn:(?:[^:]*:){4}([^/]+)\/(.+)$/.exec(model) ?? [];
  const isNamed = type === "foundation-model" || type === "inference-profile";
  if (type !== undefined && !isNamed) return { id: undefined, prefix: undefined };
  const id = type === undefined ? model : resource;
  const prefix = Object.keys(profileRegions).find((name) => id.startsWith(`${name}.`));
  return { prefix, id: prefix === undefined ? id : id.slice(prefix.length + 1) };
}

function rowOf(id: string): CapabilityRow | undefined {
  if (testModels.test(id)) return allCapableRow;
  return capabilityRows.find(([pattern]) => pattern.test(id))?.[1];
}

function checkModelId(model: string, longest: number): void {
  const pattern = new RegExp(`^(?:${modelIdPattern})$`);
  checkShape(
    { modelId: model },
    {
      kind: "structure",
      members: { modelId: { kind: "string", length: [1, longest], pattern } },
      required: ["modelId"],
    },
  );
}

function unknownModel(): BedrockError {
  return invalid(texts.unknownModel);
}
