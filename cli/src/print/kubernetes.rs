//! A manifest for Kubernetes: an indexed Job with one pod per host, found by a headless Service.

use std::path::Path;

use dosmos_proto::access::Files;

use super::plan::Plan;

pub(super) fn manifest(plan: &Plan<'_>) -> String {
    let name = label(plan.name);
    let (port, hosts) = (plan.port(), plan.hosts.count());
    let file: String = plan.text.lines().map(|l| format!("    {l}\n")).collect();
    let words = [
        "dosmos",
        "node",
        "--whole-host",
        "--cluster",
        "/etc/dosmos/cluster.toml",
        "--",
    ];
    let words = words
        .into_iter()
        .chain(plan.program.iter().map(String::as_str));
    let command: String = words.map(|w| format!("        - {}\n", text(w))).collect();
    let image = text(plan.image);
    let (secret, certificates) = match plan.tls {
        Some(files) => (
            format!("#   kubectl create secret generic {name}-tls --from-file=tls/node\n"),
            projected(&name, plan, files),
        ),
        None => (String::new(), String::new()),
    };
    format!(
        "# Cluster {name} on Kubernetes 1.27 or later, one pod per host. The token of the run is a secret:
#   kubectl create secret generic {name}-token --from-literal=token=$(openssl rand -hex 16)
{secret}#   kubectl apply -f THIS-FILE
# Traces stay in the volume claim {name}-runs, which all pods share.
apiVersion: v1
kind: Service
metadata:
  name: {name}
spec:
  clusterIP: None
  publishNotReadyAddresses: true
  selector:
    batch.kubernetes.io/job-name: {name}
  ports:
  - name: rendezvous
    port: {port}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: {name}
data:
  cluster.toml: |
{file}---
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: {name}-runs
spec:
  accessModes:
  - ReadWriteMany
  resources:
    requests:
      storage: 10Gi
---
apiVersion: batch/v1
kind: Job
metadata:
  name: {name}
spec:
  completions: {hosts}
  parallelism: {hosts}
  completionMode: Indexed
  backoffLimit: 0
  template:
    spec:
      subdomain: {name}
      restartPolicy: Never
      # The user of the image of dosmos: files in the volumes are readable by its group.
      securityContext:
        fsGroup: 10001
      terminationGracePeriodSeconds: 60
      affinity:
        podAntiAffinity:
          preferredDuringSchedulingIgnoredDuringExecution:
          - weight: 100
            podAffinityTerm:
              topologyKey: kubernetes.io/hostname
              labelSelector:
                matchLabels:
                  batch.kubernetes.io/job-name: {name}
      containers:
      - name: host
        image: {image}
        workingDir: /runs
        command:
{command}        env:
        - name: DOSMOS_SIZE
          value: \"{hosts}\"
        - name: DOSMOS_RENDEZVOUS
          value: {name}-0.{name}:{port}
        - name: DOSMOS_JOB
          valueFrom:
            fieldRef:
              fieldPath: metadata.labels['batch.kubernetes.io/controller-uid']
        - name: DOSMOS_TOKEN
          valueFrom:
            secretKeyRef:
              name: {name}-token
              key: token
        volumeMounts:
        - name: cluster
          mountPath: /etc/dosmos
        - name: runs
          mountPath: /runs
      volumes:
      - name: cluster
        projected:
          defaultMode: 0400
          sources:
          - configMap:
              name: {name}
{certificates}      - name: runs
        persistentVolumeClaim:
          claimName: {name}-runs
"
    )
}

/// The certificate of a node as files beside the cluster file, where that one expects them.
fn projected(name: &str, plan: &Plan<'_>, files: &Files) -> String {
    // Paths of certificates are absolute once the file is read.
    let file = plan.file.canonicalize();
    let file = file.as_deref().unwrap_or(plan.file);
    let folder = file.parent().unwrap_or(Path::new(""));
    let of_secret = [
        ("ca.pem", &files.ca),
        ("certificate.pem", &files.certificate),
        ("key.pem", &files.key),
    ];
    let items = of_secret.map(|(key, path)| {
        let path = path.strip_prefix(folder).unwrap_or(path).display();
        let path = text(&path.to_string());
        format!("              - key: {key}\n                path: {path}\n")
    });
    format!(
        "          - secret:\n              name: {name}-tls\n              items:\n{}",
        items.concat()
    )
}

/// The name as Kubernetes allows one: at most 50 lower-case letters, digits and dashes, a letter first.
fn label(name: &str) -> String {
    let plain = |c: char| match c {
        c if c.is_ascii_alphanumeric() => c.to_ascii_lowercase(),
        _ => '-',
    };
    let name: String = name.chars().take(50).map(plain).collect();
    let name = name.trim_matches('-');
    match name.starts_with(|c: char| c.is_ascii_lowercase()) {
        true => name.to_owned(),
        false => format!("dosmos-{name}"),
    }
}

/// A word as YAML reads it back: JSON is YAML.
fn text(word: &str) -> String {
    serde_json::Value::from(word).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_that_kubernetes_allows() {
        assert_eq!(label("my_Cluster.7"), "my-cluster-7");
        assert_eq!(label("7-up-"), "dosmos-7-up");
        assert_eq!(text("a \"b\"\n"), r#""a \"b\"\n""#);
    }
}
