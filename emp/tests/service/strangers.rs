//! Who is refused and told what is wrong; what standard tools see.

use dosmos_proto::wire::event_manager_client::EventManagerClient;
use dosmos_proto::wire::{self, ingest_request};
use dosmos_proto::{Token, transport};
use tonic::Code;

use crate::common::{DEADLINE, Emp, Mp, post};

#[tokio::test]
async fn strangers_are_told_what_is_wrong() {
    let dir = dosmos_testseeds::scratch();
    let emp = Emp::start(dir.path(), 0, dir.path().join("s")).await;
    let refused = Mp::connect(&emp, "mp1", 1).await.err().unwrap();
    assert!(
        refused.message().contains("mp1 does not report to emp0"),
        "{refused}"
    );
    Mp::connect(&emp, "mp0", 7).await.unwrap();
    let refused = Mp::connect(&emp, "mp0", 6).await.err().unwrap();
    assert!(
        refused
            .message()
            .contains("incarnation 0-00000006 is older than 0-00000007"),
        "{refused}"
    );
    let mut mp = Mp::connect(&emp, "mp0", 8).await.unwrap();
    let broken = wire::Batch {
        sequence: 1,
        records: Some(wire::RecordColumns {
            kind: vec![1].into(),
            ..Default::default()
        }),
        ..Default::default()
    };
    post(&mp.send, ingest_request::Body::Batch(broken));
    let status = mp.replies.message().await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    let bad = wire::HistogramRequest::default();
    let status = emp.client().await.get_histogram(bad).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    assert!(status.message().contains("0 buckets"), "{status}");
}

#[tokio::test]
async fn an_unusable_store_is_named_at_the_start() {
    let dir = dosmos_testseeds::scratch();
    let file = dir.path().join("occupied");
    std::fs::write(&file, "").unwrap();
    let emp = Emp::start(dir.path(), 0, file).await;
    let error = emp.task.await.unwrap().unwrap_err().to_string();
    assert!(
        error.contains("emp0 cannot use its store") && error.contains("occupied"),
        "{error}"
    );
}

/// Whoever does not show the token of the run can neither ask nor report.
#[tokio::test]
async fn strangers_are_refused() {
    let dir = dosmos_testseeds::scratch();
    let emp = Emp::start(dir.path(), 0, dir.path().join("s")).await;
    emp.client().await;
    let other = Token::generate().unwrap();
    for token in [None, Some(&other)] {
        let channel = transport::connect(&emp.address, token, DEADLINE)
            .await
            .unwrap();
        let mut client = EventManagerClient::new(channel);
        let selection = client.set_selection(wire::SelectionRequest::default());
        let said = selection.await.unwrap_err();
        assert_eq!(said.code(), Code::Unauthenticated, "{said}");
        let ingest = client.ingest(tokio_stream::empty());
        let said = ingest.await.unwrap_err();
        assert_eq!(said.code(), Code::Unauthenticated, "{said}");
        assert!(said.message().contains("DOSMOS_TOKEN"), "{said}");
    }
    emp.stop().await;
}

#[tokio::test]
async fn standard_tools_find_their_way() {
    let dir = dosmos_testseeds::scratch();
    let emp = Emp::start(dir.path(), 0, dir.path().join("s")).await;
    emp.client().await;
    let channel = transport::connect(&emp.address, Some(&emp.token), DEADLINE)
        .await
        .unwrap();
    let mut health = tonic_health::pb::health_client::HealthClient::new(channel.clone());
    let request = tonic_health::pb::HealthCheckRequest {
        service: "dosmos.v1.EventManager".into(),
    };
    let answer = health.check(request).await.unwrap().into_inner();
    assert_eq!(
        answer.status(),
        tonic_health::pb::health_check_response::ServingStatus::Serving
    );
}
