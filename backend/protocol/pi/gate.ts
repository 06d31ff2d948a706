// The gate of Deskbell: every call of a tool asks leave of the hub before it runs. Which calls the person is asked about,
// and which are answered by a rule, the hub decides. Where there is no hub to ask, or its answer cannot be read, the call
// does not run.

const MARK = "deskbell-gate/1 ";

export default function (pi: any) {
  pi.on("tool_call", async (event: any, ctx: any) => {
    const refuse = (reason: string) => ({ block: true, reason });
    if (!ctx.hasUI) return refuse("Deskbell's gate has nobody to ask, so this call does not run.");
    let answer: unknown;
    try {
      const asked = JSON.stringify({ tool: event.toolName, call: event.toolCallId, folder: ctx.cwd, input: event.input });
      answer = await ctx.ui.input(MARK + asked, undefined, { signal: ctx.signal });
    } catch (error) {
      return refuse("Deskbell's gate could not ask: " + String(error));
    }
    if (typeof answer !== "string") return refuse("Nobody allowed this call.");
    try {
      const said = JSON.parse(answer);
      if (said && said.verdict === "allow") return undefined;
      return refuse(said && typeof said.reason === "string" && said.reason !== "" ? said.reason : "This call was not allowed.");
    } catch {
      return refuse("Deskbell's answer could not be read, so this call does not run.");
    }
  });
}
