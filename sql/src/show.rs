//! Answers as people and programs read them: a table, JSON or CSV. What an answer lacks stands in the footer of the table, in the
//! JSON, and on standard error.

use datafusion::arrow::array::Array;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::json::writer::{JsonArray, WriterBuilder};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::error::DataFusionError;
use dosmos_cli::args::Format;
use dosmos_cli::output::{self, Cell, Column, Table};
use dosmos_client::text;
use dosmos_trace::query::Completeness;

use crate::Error;
use crate::database::{Answer, Database};

/// Rows that a table shows: more than anybody reads.
const MOST_ROWS: usize = 10_000;

/// Prints the answer, and what it lacks.
///
/// # Errors
/// If the query cannot be carried on, or an answer cannot be written as JSON.
pub(crate) async fn print(
    database: &Database,
    answer: Answer<'_>,
    format: Format,
) -> anyhow::Result<()> {
    match format {
        Format::Table => table(database, answer).await,
        Format::Csv => csv(database, answer).await,
        Format::Json => json(database, answer).await,
    }
}

/// What is missing, on standard error; and all of it.
async fn lacking(database: &Database) -> anyhow::Result<Completeness> {
    let completeness = database.completeness().await;
    let troubles = match database.run().launch_and_troubles().await {
        Ok((launch, troubles)) => {
            output::note(&launch.line());
            troubles
        }
        // Nobody answers any more: the completeness says so.
        Err(_) => Vec::new(),
    };
    for line in completeness.reasons().into_iter().chain(troubles) {
        output::note(&format!("incomplete: {line}"));
    }
    Ok(completeness)
}

async fn table(database: &Database, mut answer: Answer<'_>) -> anyhow::Result<()> {
    let schema = answer.schema();
    let columns = schema
        .fields()
        .iter()
        .map(|f| Column::named(f.name(), f.name()));
    let mut table = Table::of(columns);
    let mut more = false;
    let mut plan = String::new();
    'read: while let Some(batch) = answer.next().await? {
        for row in rows(&batch)? {
            if table.len() == MOST_ROWS {
                more = true;
                break 'read;
            }
            if plans(&schema) {
                let cells: Vec<String> = row.iter().flatten().cloned().collect();
                plan += &format!("{}\n", cells.join("\n").trim_end());
            }
            table.row(
                row.into_iter()
                    .map(|cell| cell.map_or_else(Cell::none, Cell::from)),
            );
        }
    }
    drop(answer);
    output::text(&match plans(&schema) {
        true => plan,
        false => table.render(Format::Table),
    });
    let completeness = lacking(database).await?;
    let rows = text::plural(table.len() as u64, "row");
    output::text(&format!("{rows}; {}\n", footer(&completeness)));
    if more {
        output::note(&format!(
            "only the first {MOST_ROWS} rows are shown; use LIMIT, or --format csv or json for all"
        ));
    }
    Ok(())
}

/// Whether these are the columns of a plan, whose text has lines.
fn plans(schema: &SchemaRef) -> bool {
    let names = schema.fields().iter().map(|f| f.name().as_str());
    names.eq(["plan_type", "plan"])
}

/// How much of the run the answer rests on.
fn footer(completeness: &Completeness) -> String {
    if completeness.is_complete() {
        return "complete".to_owned();
    }
    let share = 100.0 * completeness.share();
    let reasons = completeness.reasons().join("; ");
    format!("incomplete (of what is counted, {share:.1} % is there): {reasons}")
}

async fn csv(database: &Database, mut answer: Answer<'_>) -> anyhow::Result<()> {
    let names: Vec<String> = answer
        .schema()
        .fields()
        .iter()
        .map(|f| f.name().clone())
        .collect();
    output::text(&text::csv([names]));
    while let Some(batch) = answer.next().await? {
        let rows = rows(&batch)?.into_iter();
        let cells = rows.map(|row| {
            let cells = row
                .into_iter()
                .map(|cell| text::clean_line(&cell.unwrap_or_default()));
            cells.collect::<Vec<_>>()
        });
        output::text(&text::csv(cells));
    }
    lacking(database).await?;
    Ok(())
}

async fn json(database: &Database, mut answer: Answer<'_>) -> anyhow::Result<()> {
    let columns = described(&answer.schema());
    let mut separator = "";
    output::text(&format!("{{\"columns\":{columns},\"rows\":["));
    while let Some(batch) = answer.next().await? {
        if batch.num_rows() > 0 {
            output::text(&format!("{separator}\n{}", objects(&batch)?));
            separator = ",";
        }
    }
    let completeness = lacking(database).await?;
    let run = database.run().launch();
    output::text(&format!(
        "\n],\"complete\":{},\"share\":{},\"completeness\":{},\"run\":{}}}\n",
        completeness.is_complete(),
        serde_json::to_string(&completeness.share())?,
        serde_json::to_string(&completeness)?,
        serde_json::to_string(&run.metadata())?,
    ));
    Ok(())
}

/// Names and types of the columns.
fn described(schema: &SchemaRef) -> serde_json::Value {
    let columns = schema
        .fields()
        .iter()
        .map(|f| serde_json::json!({ "name": f.name(), "type": f.data_type().to_string() }));
    columns.collect()
}

/// The rows of a batch as JSON objects, with commas between them.
fn objects(batch: &RecordBatch) -> Result<String, DataFusionError> {
    let mut bytes = Vec::new();
    let builder = WriterBuilder::new().with_explicit_nulls(true);
    let mut writer = builder.build::<_, JsonArray>(&mut bytes);
    writer.write(batch)?;
    writer.finish()?;
    drop(writer);
    let text = String::from_utf8(bytes).map_err(|e| DataFusionError::External(Box::new(e)))?;
    let inner = text.strip_prefix('[').and_then(|t| t.strip_suffix(']'));
    Ok(inner.unwrap_or(&text).to_owned())
}

/// The cells of a batch as text; none for null.
fn rows(batch: &RecordBatch) -> Result<Vec<Vec<Option<String>>>, Error> {
    let options = FormatOptions::default();
    let engine = |e: datafusion::arrow::error::ArrowError| Error::of_engine(e.into(), &[]);
    let columns = batch.columns().iter();
    let formatters = columns.map(|c| ArrayFormatter::try_new(c.as_ref(), &options));
    let formatters: Vec<_> = formatters.collect::<Result<_, _>>().map_err(engine)?;
    let row = |i: usize| {
        let cells = batch.columns().iter().zip(&formatters);
        let cells = cells.map(|(column, formatter)| match column.is_null(i) {
            true => Ok(None),
            false => formatter.value(i).try_to_string().map(Some),
        });
        cells.collect::<Result<_, _>>().map_err(engine)
    };
    (0..batch.num_rows()).map(row).collect()
}
