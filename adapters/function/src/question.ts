import type { Answer, JsonObject, Question } from "@taskferry/core";

/** The part of Standard Schema and Standard JSON Schema that a form needs. Zod 4.2 and later have it. */
export interface FormSchema<Content> {
  readonly "~standard": {
    readonly types?: { readonly output: Content } | undefined;
    readonly validate: (value: unknown) => Validation<Content> | Promise<Validation<Content>>;
    readonly jsonSchema: {
      readonly input: (options: { target: "draft-2020-12" }) => Record<string, unknown>;
    };
  };
}

type Validation<Content> =
  | { readonly value: Content; readonly issues?: undefined }
  | { readonly issues: readonly { readonly message: string }[] };

/** What a function asks: a question whose form may be a Zod object, a JSON Schema, or absent (yes or no). */
export interface Ask<Content> extends Omit<Question, "key" | "schema"> {
  readonly schema?: FormSchema<Content> | JsonObject;
}

/** An {@link Answer} with the content that the form's schema made of it. */
export type Answered<Content> =
  | { readonly action: "accept"; readonly content: Content }
  | { readonly action: "decline" | "cancel"; readonly content?: undefined };

/** The question as core stores it. */
export function toQuestion<Content>(key: string, { schema, ...rest }: Ask<Content>): Question {
  if (schema === undefined) return { key, ...rest };
  if (!isFormSchema(schema)) return { key, ...rest, schema };
  const { $schema: _, ...form } = schema["~standard"].jsonSchema.input({ target: "draft-2020-12" });
  return { key, ...rest, schema: form as JsonObject };
}

/** Checks an answer against its form. Returns what is wrong with it, or what the function gets. */
export async function toAnswered<Content>(
  { schema }: Ask<Content>,
  { action, content }: Answer,
): Promise<Answered<Content> | { readonly issues: string }> {
  if (action !== "accept") return { action };
  // A plain JSON Schema was checked by core before the answer came here.
  if (schema === undefined || !isFormSchema(schema)) return { action, content: (content ?? {}) as Content };
  const checked = await schema["~standard"].validate(content);
  if (checked.issues === undefined) return { action, content: checked.value };
  return { issues: checked.issues.map((issue) => issue.message).join("; ") };
}

function isFormSchema<Content>(schema: FormSchema<Content> | JsonObject): schema is FormSchema<Content> {
  return "~standard" in schema;
}
